// SPDX-License-Identifier: GPL-3.0-or-later
/* Structures of the dynamic linker and of glibc's threads, read from a target's memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../inject/linkmap.h"
#include "../../inject/mem.h"
#include "../../inject/tcb.h"
#include "../../inject/tls.h"
#include "fuzz.h"

const char fuzz_name[] = "memory";

#define TID 7

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	return mem_read(FUZZ_PID, addr, buf, len);
}

static void link_map(uint64_t dynamic, uint64_t size)
{
	struct linkmap lm;
	uint64_t debug;

	if (linkmap_find(FUZZ_PID, dynamic, size, &debug))
		debug = dynamic;
	if (linkmap_read(FUZZ_PID, debug, &lm))
		return;
	FUZZ_CHECK(lm.n > 0 && lm.n <= 16384);
	linkmap_free(&lm);
}

static void descriptors(uint64_t at, uint32_t tid_offset, uint32_t link_offset)
{
	struct map v[] = { { .start = at & ~4095ULL,
			     .end = (at & ~4095ULL) + (2 << 20),
			     .prot = PROT_READ | PROT_WRITE,
			     .name = "" },
			   { .start = 1ULL << 50, .end = (1ULL << 50) + 4096, .name = "[heap]" } };
	struct maps maps = { .v = v, .n = 2 };
	struct target t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd(), .comm = "x" };
	struct tcb_finder f;
	uint64_t a;

	if (tcb_finder_init(&f, &t, tid_offset))
		return;
	a = tcb_find(&f, at, v[0].end, TID);
	FUZZ_CHECK(a == 0 || (a >= (at & ~63ULL) && a < v[0].end));
	tcb_find_listed(&f, at, link_offset, TID);
	tcb_find_main(&f, &maps, TID);
	tcb_finder_free(&f);
}

static void arenas(uint64_t at, uint32_t len)
{
	struct tls_layout l = {
		.block_off = 4096, .block_len = len & 0xff8, .rw_lo = at, .rw_hi = at + 65536
	};
	uint64_t tps[4] = { at + 4096, 0, at + 8192, at + 4096 }, off;

	tls_is_arena(at, l.rw_lo, l.rw_hi, read_memory, NULL);
	tls_is_arena(at, 0, 0, read_memory, NULL);
	if (tls_arena_offset(&l, tps, 4, read_memory, NULL, &off) == 0)
		FUZZ_CHECK(off % 8 == 0 && off <= 4096 && off > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint64_t at = fuzz_number(&in, 6);
	uint32_t a = (uint32_t)fuzz_number(&in, 2), b = (uint32_t)fuzz_number(&in, 2);

	fuzz_memory(&in);
	link_map(at, a);
	descriptors(at, a, b);
	arenas(at, b);
	return 0;
}
