// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * glibc's heap, walked from outside: arenas, heaps, lists and chunks as a hostile or damaged target
 * has them. The input is the version (1 byte), what the address of main_arena is said to be (its
 * distance from the first piece, 2 bytes), then memory; the first piece is libc's data.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/glibc_check.h"
#include "../../agent/glibc_find.h"
#include "../../agent/glibc_mmapped.h"
#include "../../agent/glibc_plan_read.h"
#include "../../agent/glibc_tcache.h"
#include "../../agent/glibc_threads.h"
#include "../../agent/glibc_walk.h"
#include "../../inject/mem.h"
#include "../../inject/reader.h"
#include "fuzz.h"

const char fuzz_name[] = "heap";

/* More than any input has room for: a walk that visits so many goes round in a circle. */
#define CHUNKS_MAX 200000

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	return mem_read(FUZZ_PID, addr, buf, len);
}

static void refresh(void *ctx)
{
	(void)ctx;
}

static void check_fault(const struct glibc_fault *f)
{
	char text[200];

	if (f->kind == FAULT_NONE)
		return;
	glibc_fault_text(f, text, sizeof(text));
	fuzz_printable(text, strlen(text), "");
	FUZZ_CHECK(text[0] && glibc_fault_name(f->kind)[0]);
	glibc_fault_where(f, text, sizeof(text));
	fuzz_printable(text, strlen(text), "");
}

static void plan(const struct glibc_view *v)
{
	/* no pages: what is planned is thrown away with the first that is asked for */
	const struct pages pages = { .fd = -1 };
	const struct glibc_budget budget = { .chunks = CHUNKS_MAX };
	const struct glibc_plan_opts o = { 0 };
	struct glibc_plan p;

	if (glibc_plan_read(v, &pages, &o, &budget, &p) == 0) {
		check_fault(&p.ring_fault);
		for (size_t i = 0; i < p.arenas; i++) {
			check_fault(&p.arena[i].fault);
			FUZZ_CHECK(p.arena[i].index == i);
		}
	}
	glibc_plan_free(&p);
}

static void look(const struct glibc_view *v, bool every_chunk)
{
	struct glibc_check_opts opts = { .every_chunk = every_chunk, .max_chunks = CHUNKS_MAX };
	struct glibc_check c;
	int rc = glibc_check_run(v, &opts, &c);

	FUZZ_CHECK(rc <= 0);
	if (rc)
		return;
	check_fault(&c.fault);
	FUZZ_CHECK(!c.limited || c.fault.kind != FAULT_NONE || c.chunks >= CHUNKS_MAX / 2);
}

/* libc's data taken for a thread's storage: pointers in it may lead to a thread cache. */
static void caches(const struct glibc_view *v, uint64_t libc)
{
	uint64_t block[32], off = 0, left = CHUNKS_MAX;
	const struct tls_layout l = { .block_off = sizeof(block), .block_len = sizeof(block) };
	size_t words = sizeof(block) / sizeof(*block);

	if (v->r->read(v->r->ctx, libc, block, sizeof(block)))
		return;
	if (glibc_tcache_offset(v, &l, block, 1, &off) == 0)
		FUZZ_CHECK(off && off <= sizeof(block) &&
			   glibc_tcache_is(v, block[words - off / sizeof(*block)], false));
	for (size_t w = 0; w < words; w++) {
		struct glibc_tcache t;
		uint64_t before = left;
		int rc = glibc_tcache_of(v, block[w], &left, &t);

		FUZZ_CHECK(rc <= 0 && t.blocks <= before);
		FUZZ_CHECK(rc || (t.row && glibc_tcache_is(v, block[w], false)));
	}
}

/* The same memory taken for what large blocks lie in, in two pieces. */
static void mmapped(struct glibc_view view, const struct span *libc)
{
	const uint64_t middle = (libc->start + (libc->end - libc->start) / 2) & ~4095ULL;
	const struct span place[] = { { libc->start, middle }, { middle, libc->end } };
	struct glibc_mmapped m;

	if (!view.par.at)
		return;
	view.par.n_mmaps = INT32_MAX;
	if (glibc_mmapped_find(&view, place, 2, &m) == 0)
		for (size_t i = 0; i < m.n; i++)
			FUZZ_CHECK(m.v[i].start >= (i ? m.v[i - 1].end : libc->start) &&
				   m.v[i].start < m.v[i].end && m.v[i].end <= libc->end);
	glibc_mmapped_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct reader reader = { .read = read_memory, .refresh = refresh };
	struct fuzz_input in = { data, size }, first;
	int version = (int)fuzz_number(&in, 1);
	uint64_t hint = fuzz_number(&in, 2), len;
	struct glibc_view view;
	struct span libc;

	first = in;
	libc.start = fuzz_number(&first, 8) & INT64_MAX & ~4095ULL;
	len = fuzz_number(&first, 2);
	libc.end = (libc.start + len + 4095) & ~4095ULL;
	fuzz_memory(&in);
	if (libc.start >= libc.end)
		return 0;
	if (glibc_find(&reader, &libc, 1, version, hint ? libc.start + hint : 0, &view))
		return 0;
	FUZZ_CHECK(view.state && view.main_arena >= libc.start && view.main_arena < libc.end);
	plan(&view);
	mmapped(view, &libc);
	caches(&view, libc.start);
	look(&view, false);
	look(&view, true);
	return 0;
}
