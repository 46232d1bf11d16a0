// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Who owns the memory: the rows of smaps, with names of the target's choice, divided by claims that
 * come from its memory. The input is the text of smaps and that of mountinfo (2 bytes of length
 * before each), facts (1 byte), a number of claims (1 byte) of 14 bytes each, then memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/owners_glibc.h"
#include "../../inject/mem.h"
#include "../../inject/mounts.h"
#include "fuzz.h"

const char fuzz_name[] = "owners";

static int peek(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	return mem_read(FUZZ_PID, addr, buf, len);
}

static void forget(void *ctx)
{
	(void)ctx;
}

/* Pages are counted as whoever races with us may have left them: not as smaps says. */
static int count(void *ctx, uint64_t lo, uint64_t hi, uint64_t *resident, uint64_t *swapped)
{
	FUZZ_CHECK(lo <= hi && lo % 4096 == 0 && hi % 4096 == 0);
	*resident = (hi - lo) / 2 & ~4095ULL;
	*swapped = lo % 12288;
	return *(const int *)ctx;
}

static void check(const struct smaps *s, const struct owners *o)
{
	struct amounts sum = { 0 }, rows = { 0 };
	struct owner_table t;

	for (size_t i = 0; i < o->n; i++) {
		const struct piece *p = &o->v[i];

		FUZZ_CHECK(p->owner < OWNERS && p->kind && p->row && piece_label(p));
		FUZZ_CHECK(p->row->map.start <= p->start && p->end <= p->row->map.end);
		FUZZ_CHECK(i == 0 || o->v[i - 1].start <= p->start);
		sum.resident += p->a.resident;
		sum.swap += p->a.swap;
		sum.mapped += p->a.mapped;
	}
	for (size_t i = 0; i < s->n; i++) {
		rows.resident += s->v[i].rss;
		rows.swap += s->v[i].swap;
		rows.mapped += s->v[i].map.end - s->v[i].map.start;
	}
	FUZZ_CHECK(sum.resident == rows.resident && sum.resident == o->total.resident);
	FUZZ_CHECK(sum.swap == rows.swap && sum.mapped == rows.mapped);
	if (owners_table(o, &t) == 0) {
		sum = (struct amounts){ 0 };
		for (size_t i = 0; i < t.n; i++)
			sum.resident += t.v[i].a.resident;
		FUZZ_CHECK(sum.resident == rows.resident);
		owner_table_free(&t);
	}
}

static void take_claims(struct fuzz_input *in, struct owner_facts *f)
{
	static const char *const kinds[] = { "", "java heap", "bss" };

	for (uint64_t n = fuzz_number(in, 1); n && in->left; n--) {
		struct claim c = { .start = fuzz_number(in, 6) << 4 };
		uint64_t class = fuzz_number(in, 1);

		c.end = c.start + (fuzz_number(in, 6) << 4);
		c.owner = (enum owner)(fuzz_number(in, 1) % OWNERS);
		c.kind = kinds[class / 4 % 3];
		(void)!owner_claim(f, (enum claim_class)(class % CLAIM_CLASSES), &c);
	}
}

static void divide(const struct smaps *s, struct owner_facts *f)
{
	const struct reader reader = { .read = peek, .refresh = forget };
	struct glibc_ranges ranges;
	struct owners o;

	if (glibc_ranges_from_maps(s, &reader, &ranges) == 0) {
		(void)!owner_claim_glibc(f, &ranges);
		glibc_ranges_free(&ranges);
	}
	if (owners_assign(s, f, &o) == 0) {
		check(s, &o);
		owners_free(&o);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct owner_facts f;
	struct mounts mounts;
	struct smaps s;
	size_t len;
	const uint8_t *p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 2), &len);
	int rc = smaps_parse((const char *)p, len, &s), failed;
	unsigned facts;
	char *text;

	/* the kernel's addresses are those of pages */
	for (size_t i = 0; rc == 0 && i < s.n; i++)
		if ((s.v[i].map.start | s.v[i].map.end) % 4096) {
			smaps_free(&s);
			return 0;
		}
	if (rc)
		return 0;
	p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 2), &len);
	text = fuzz_text(p, len);
	mounts_parse(text, &mounts);
	free(text);
	owner_facts_init(&f);
	facts = (unsigned)fuzz_number(&in, 1);
	f.go = facts & 1;
	f.brk = facts & 2 ? OWNER_GLIBC_MAIN : OWNER_NAMED;
	f.rest = facts & 4 ? OWNER_JEMALLOC : OWNER_UNCLAIMED;
	f.reserver = facts & 8 ? OWNER_JVM : OWNER_UNCLAIMED;
	f.rest_min = f.reserve_min = facts & 16 ? 65536 : 0;
	failed = facts & 64 ? -EIO : 0;
	f.count = facts & 32 ? count : NULL;
	f.count_ctx = &failed;
	f.mounts = &mounts;
	take_claims(&in, &f);
	fuzz_memory(&in);
	divide(&s, &f);
	owner_facts_free(&f);
	smaps_free(&s);
	return 0;
}
