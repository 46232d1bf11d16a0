// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/owners.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/owners_glibc.h"
#include "child.h"

#define KIB 1024ULL
#define MIB (1024 * KIB)

struct scene {
	struct smaps s;
	struct owner_facts f;
	struct owners o;
};

static void scene_start(struct scene *c, const char *fixture)
{
	size_t len;
	char *text = fixture_read(fixture, &len);

	cr_assert_eq(smaps_parse(text, len, &c->s), 0);
	free(text);
	owner_facts_init(&c->f);
}

static void claim(struct scene *c, enum claim_class class, uint64_t lo, uint64_t hi,
		  enum owner owner, const char *kind)
{
	cr_assert_eq(owner_claim(&c->f, class,
				 &(struct claim){ .start = lo,
						  .end = hi,
						  .owner = owner,
						  .basis = BASIS_READ,
						  .kind = kind,
						  .id = -1 }),
		     0);
}

static uint64_t field(const struct amounts *a, size_t i)
{
	return ((const uint64_t *)a)[i];
}
#define FIELDS (sizeof(struct amounts) / sizeof(uint64_t))

/* Whatever the facts: each mapping's figures are those of its pieces, and nothing is negative. */
static void check_sums(const struct scene *c)
{
	uint64_t sum[FIELDS] = { 0 }, rss = 0, swap = 0;
	size_t at = 0;

	for (size_t i = 0; i < c->s.n; i++) {
		const struct smaps_row *row = &c->s.v[i];
		struct amounts all = { 0 };
		uint64_t end = row->map.start;

		for (; at < c->o.n && c->o.v[at].row == row; at++) {
			const struct piece *p = &c->o.v[at];

			cr_assert(p->start == end || p->end == end);
			end = p->end;
			for (size_t k = 0; k < FIELDS; k++) {
				((uint64_t *)&all)[k] += field(&p->a, k);
				sum[k] += field(&p->a, k);
			}
			cr_assert_leq(p->a.resident, p->end - p->start ? row->rss : 0);
		}
		cr_assert_eq(end, row->map.end);
		cr_assert_eq(all.mapped, row->map.end - row->map.start);
		cr_assert_eq(all.resident, row->rss);
		cr_assert_eq(all.swap, row->swap);
		cr_assert_eq(all.huge, row->anon_huge + row->shmem_huge + row->file_huge);
		cr_assert_eq(all.lazyfree, row->lazyfree);
		cr_assert_eq(all.locked, row->locked);
		cr_assert_eq(all.hugetlb, row->private_hugetlb + row->shared_hugetlb);
		rss += row->rss;
		swap += row->swap;
	}
	cr_assert_eq(at, c->o.n);
	for (size_t k = 0; k < FIELDS; k++)
		cr_assert_eq(sum[k], field(&c->o.total, k));
	cr_assert_eq(c->o.total.resident, rss);
	cr_assert_eq(c->o.total.swap, swap);
}

static void scene_run(struct scene *c)
{
	struct owner_table t;
	struct amounts all = { 0 };

	cr_assert_eq(owners_assign(&c->s, &c->f, &c->o), 0);
	check_sums(c);
	cr_assert_eq(owners_table(&c->o, &t), 0);
	for (size_t i = 0; i < t.n; i++) {
		for (size_t k = 0; k < FIELDS; k++)
			((uint64_t *)&all)[k] += field(&t.v[i].a, k);
		if (i)
			cr_assert_leq(t.v[i].a.resident, t.v[i - 1].a.resident);
	}
	for (size_t k = 0; k < FIELDS; k++)
		cr_assert_eq(field(&all, k), field(&c->o.total, k));
	owner_table_free(&t);
}

static void scene_end(struct scene *c)
{
	owners_free(&c->o);
	owner_facts_free(&c->f);
	smaps_free(&c->s);
}

/* The n-th piece that holds addr. */
static const struct piece *piece_at(const struct scene *c, uint64_t addr, size_t n)
{
	for (size_t i = 0; i < c->o.n; i++)
		if (addr >= c->o.v[i].start && addr < c->o.v[i].end && n-- == 0)
			return &c->o.v[i];
	return NULL;
}

static void expect(const struct scene *c, uint64_t addr, enum owner owner, const char *kind,
		   uint64_t resident)
{
	const struct piece *p = piece_at(c, addr, 0);

	cr_assert_not_null(p);
	cr_assert_eq(p->owner, owner, "%llx is %s, not %s", (unsigned long long)addr,
		     owner_name(p->owner), owner_name(owner));
	cr_assert_str_eq(p->kind, kind);
	cr_assert_eq(p->a.resident, resident, "%llx: %llu resident", (unsigned long long)addr,
		     (unsigned long long)p->a.resident);
}

/* The written copies of a file's mapping. */
static void expect_copy(const struct scene *c, uint64_t addr, uint64_t resident)
{
	const struct piece *p = piece_at(c, addr, 1);

	cr_assert_not_null(p);
	cr_assert_eq(p->owner, OWNER_FILE_PRIVATE);
	cr_assert_str_eq(p->kind, "written");
	cr_assert_eq(p->a.resident, resident);
}

Test(owners, names)
{
	for (int i = 0; i < OWNERS; i++)
		cr_assert_gt(strlen(owner_name((enum owner)i)), 0);
	cr_assert_str_eq(owner_name(OWNERS), "");
	cr_assert_str_eq(owner_name(OWNER_GLIBC_ARENA), "glibc-arena");
	cr_assert_str_eq(basis_name(BASIS_REST), "rest");
}

/* Without any fact: what the kernel says itself. */
Test(owners, no_facts)
{
	static const char *const names[] = { "smaps/threads", "smaps/go",     "smaps/go-names",
					     "smaps/jvm",     "smaps/static", "smaps/jemalloc",
					     "smaps/overlay", "proc/smaps" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct scene c;

		scene_start(&c, names[i]);
		scene_run(&c);
		scene_end(&c);
	}
}

/* Counts as if the part at 0x7f1008000000 had 12 KiB, the one below it what is asked for, and .bss
 * all that its mapping has. */
static int count(void *ctx, uint64_t lo, uint64_t hi, uint64_t *resident, uint64_t *swapped)
{
	static const struct {
		uint64_t lo, hi, resident;
	} parts[] = {
		{ 0x7f1008000000, 0x7f1008100000, 12 * KIB },
		{ 0x7f100e180000, 0x7f100e18e000, 40 * KIB },
		{ 0x7f100e18e000, 0x7f100e190000, 0 },
	};
	const uint64_t *below = ctx;

	*swapped = 0;
	*resident = *below;
	if (lo == 0x7f1007800000 && hi == 0x7f1008000000)
		return 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (lo != parts[i].lo || hi != parts[i].hi)
			continue;
		*resident = parts[i].resident;
		return 0;
	}
	cr_assert_fail("asked for %llx to %llx", (unsigned long long)lo, (unsigned long long)hi);
	return -EINVAL;
}

static int count_fails(void *ctx, uint64_t lo, uint64_t hi, uint64_t *resident, uint64_t *swapped)
{
	(void)ctx, (void)lo, (void)hi;
	*resident = *swapped = 0;
	return -EPERM;
}

static void threads_scene(struct scene *c)
{
	scene_start(c, "smaps/threads");
	c->f.brk = OWNER_GLIBC_MAIN;
	claim(c, CLAIM_ALLOCATOR, 0x7f1000000000, 0x7f1004000000, OWNER_GLIBC_ARENA, "");
	claim(c, CLAIM_ALLOCATOR, 0x7f1008000000, 0x7f100c000000, OWNER_GLIBC_ARENA, "");
	claim(c, CLAIM_STACK, 0x7f10077ff000, 0x7f1008000000, OWNER_THREAD_STACK, "");
	claim(c, CLAIM_MODULE, 0x7f100e180000, 0x7f100e18d100, OWNER_FILE_PRIVATE, "bss");
}

Test(owners, threads)
{
	struct scene c;
	uint64_t below = 1024 * KIB;
	const struct piece *p;

	threads_scene(&c);
	c.f.count = count;
	c.f.count_ctx = &below;
	scene_run(&c);
	expect(&c, 0x55d0a0000000, OWNER_FILE_DATA, "", 8 * KIB);
	expect(&c, 0x55d0a0002000, OWNER_FILE_TEXT, "", 56 * KIB);
	expect(&c, 0x55d0a0010000, OWNER_FILE_DATA, "", 4 * KIB);
	expect_copy(&c, 0x55d0a0010000, 4 * KIB);
	expect(&c, 0x55d0a1000000, OWNER_GLIBC_MAIN, "", 4000 * KIB);
	expect(&c, 0x7f1000000000, OWNER_GLIBC_ARENA, "", 2048 * KIB);
	expect(&c, 0x7f1000300000, OWNER_GLIBC_ARENA, "", 0);
	expect(&c, 0x7f10077ff000, OWNER_THREAD_STACK, "", 0);
	/* a mapping of two owners */
	expect(&c, 0x7f1007800000, OWNER_THREAD_STACK, "", 1024 * KIB);
	expect(&c, 0x7f1008000000, OWNER_GLIBC_ARENA, "", 12 * KIB);
	p = piece_at(&c, 0x7f1007800000, 0);
	cr_assert(p->continues, "guard and stack are one thing");
	cr_assert_eq(p->a.locked, 1024 * KIB);
	cr_assert_eq(p->a.lazyfree, 504 * KIB);
	cr_assert_eq(p[1].a.locked, 12 * KIB);
	cr_assert_eq(p[1].a.lazyfree, 8 * KIB);
	expect(&c, 0x7f100d000000, OWNER_UNCLAIMED, "anonymous", 4096 * KIB);
	/* the whole of the library's data has been written: no page of the file is left */
	expect(&c, 0x7f100e17c000, OWNER_FILE_DATA, "", 0);
	expect_copy(&c, 0x7f100e17c000, 12 * KIB);
	/* .bss ends within a page, what lies behind that is not its */
	cr_assert_eq(piece_at(&c, 0x7f100e180000, 0)->end, 0x7f100e18e000);
	cr_assert_eq(piece_at(&c, 0x7f100e18e000, 0)->owner, OWNER_UNCLAIMED);
	expect(&c, 0x7ffd3c100000, OWNER_MAIN_STACK, "", 20 * KIB);
	expect(&c, 0x7ffd3c1a4000, OWNER_VDSO, "", 4 * KIB);
	expect(&c, 0xffffffffff600000, OWNER_VDSO, "", 0);
	scene_end(&c);
}

static size_t count_owner(const struct scene *c, enum owner owner)
{
	struct owner_table t;
	size_t n = 0;

	cr_assert_eq(owners_table(&c->o, &t), 0);
	for (size_t i = 0; i < t.n; i++)
		if (t.v[i].owner == owner)
			n += t.v[i].count;
	owner_table_free(&t);
	return n;
}

Test(owners, counts_things)
{
	struct scene c;

	threads_scene(&c);
	scene_run(&c);
	cr_assert_eq(count_owner(&c, OWNER_GLIBC_ARENA), 2);
	cr_assert_eq(count_owner(&c, OWNER_THREAD_STACK), 1);
	scene_end(&c);
}

/* What the pages say does not fit: the mapping's own figure holds. */
Test(owners, pages_come_and_go)
{
	static const uint64_t below[] = { 0, 8 * KIB, 1024 * KIB, 4 * MIB, 8 * MIB, 1 << 30 };
	struct scene c;

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		uint64_t v = below[i];

		threads_scene(&c);
		c.f.count = count;
		c.f.count_ctx = &v;
		scene_run(&c);
		cr_assert_eq(piece_at(&c, 0x7f1007800000, 0)->a.resident +
				     piece_at(&c, 0x7f1008000000, 0)->a.resident,
			     1036 * KIB);
		cr_assert_eq(c.o.estimated, 0);
		scene_end(&c);
	}
}

Test(owners, pages_cannot_be_counted)
{
	struct scene c;

	threads_scene(&c);
	c.f.count = count_fails;
	scene_run(&c);
	cr_assert_eq(c.o.estimated, 2);
	/* 8 of 9 MiB */
	cr_assert_eq(piece_at(&c, 0x7f1007800000, 0)->a.resident, 920 * KIB);
	scene_end(&c);
}

Test(owners, go)
{
	struct scene c;

	scene_start(&c, "smaps/go");
	c.f.go = true;
	c.f.reserver = OWNER_GO_RUNTIME;
	c.f.reserve_min = MIB;
	claim(&c, CLAIM_RUNTIME, 0x7fe73c39b000, 0x7fe73c3db000, OWNER_GO_RUNTIME, "other");
	claim(&c, CLAIM_MODULE, 0x4d0000, 0x500000, OWNER_FILE_PRIVATE, "bss");
	scene_run(&c);
	expect(&c, 0x4d0000, OWNER_FILE_PRIVATE, "bss", 60 * KIB);
	expect(&c, 0xc000000000, OWNER_GO_HEAP, "", 3324 * KIB);
	expect(&c, 0xc000400000, OWNER_GO_HEAP, "", 0);
	expect(&c, 0xc008000000, OWNER_UNCLAIMED, "anonymous", 4 * KIB);
	expect(&c, 0x7fe73c39b000, OWNER_GO_RUNTIME, "other", 256 * KIB);
	expect(&c, 0x7fe740a00000, OWNER_GO_RUNTIME, "other", 4 * KIB);
	expect(&c, 0x7fe740a07000, OWNER_GO_RUNTIME, "reserved", 0);
	expect(&c, 0x7fe750f80000, OWNER_GO_RUNTIME, "other", 4 * KIB);
	expect(&c, 0x7fe770000000, OWNER_UNCLAIMED, "anonymous", 100 * KIB);
	scene_end(&c);
	/* without a libc nobody else is there */
	scene_start(&c, "smaps/go");
	c.f.go = true;
	c.f.rest = OWNER_GO_RUNTIME;
	scene_run(&c);
	expect(&c, 0xc000000000, OWNER_GO_HEAP, "", 3324 * KIB);
	expect(&c, 0x7fe770000000, OWNER_GO_RUNTIME, "other", 100 * KIB);
	expect(&c, 0x7fe740a07000, OWNER_GO_RUNTIME, "reserved", 0);
	cr_assert_eq(piece_at(&c, 0x7fe770000000, 0)->basis, BASIS_REST);
	cr_assert_eq(count_owner(&c, OWNER_UNCLAIMED), 0);
	scene_end(&c);
	/* the same addresses in another program are nobody's */
	scene_start(&c, "smaps/go");
	scene_run(&c);
	expect(&c, 0xc000000000, OWNER_UNCLAIMED, "anonymous", 3324 * KIB);
	scene_end(&c);
}

Test(owners, names_of_mappings)
{
	struct scene c;

	scene_start(&c, "smaps/go-names");
	scene_run(&c);
	expect(&c, 0xc000000000, OWNER_GO_HEAP, "", 3000 * KIB);
	expect(&c, 0xc000400000, OWNER_GO_HEAP, "", 0);
	expect(&c, 0x7fe73c39b000, OWNER_GO_RUNTIME, "", 256 * KIB);
	expect(&c, 0x7fe740a00000, OWNER_GO_RUNTIME, "", 4 * KIB);
	expect(&c, 0x7fe770000000, OWNER_NAMED, "", 100 * KIB);
	expect(&c, 0x7fe771000000, OWNER_GLIBC_MMAPPED, "", 200 * KIB);
	cr_assert_str_eq(piece_label(piece_at(&c, 0x7fe770000000, 0)), "[anon:libfoo pool]");
	scene_end(&c);
}

Test(owners, jvm)
{
	struct scene c;

	scene_start(&c, "smaps/jvm");
	c.f.reserver = OWNER_JVM;
	c.f.reserve_min = 64 * KIB;
	claim(&c, CLAIM_RUNTIME, 0xfc000000, 0x100000000, OWNER_JVM, "java heap");
	claim(&c, CLAIM_RUNTIME, 0x7f7459400000, 0x7f7468400000, OWNER_JVM, "code cache");
	claim(&c, CLAIM_STACK, 0x7f7458aff000, 0x7f7458bff000, OWNER_THREAD_STACK, "");
	scene_run(&c);
	expect(&c, 0xfc000000, OWNER_JVM, "java heap", 43372 * KIB);
	/* a file that is mapped into the heap stays a file */
	expect(&c, 0xffe00000, OWNER_FILE_DATA, "", 152 * KIB);
	expect_copy(&c, 0xffe00000, 316 * KIB);
	expect(&c, 0x7f73ff000000, OWNER_JVM, "other", 184 * KIB);
	expect(&c, 0x7f73ff030000, OWNER_JVM, "reserved", 0);
	/* the JVM's own guard zone is in the middle of glibc's stack */
	expect(&c, 0x7f7458aff000, OWNER_THREAD_STACK, "", 0);
	expect(&c, 0x7f7458b03000, OWNER_THREAD_STACK, "", 88 * KIB);
	expect(&c, 0x7f7459400000, OWNER_JVM, "code cache", 136 * KIB);
	expect(&c, 0x7f7460938000, OWNER_JVM, "code cache", 496 * KIB);
	expect(&c, 0x7f7474c00000, OWNER_UNCLAIMED, "anonymous", 8 * KIB);
	expect(&c, 0x7f7477c51000, OWNER_FILE_TEXT, "", 11324 * KIB);
	expect(&c, 0x7f7478dd4000, OWNER_FILE_DATA, "", 32 * KIB);
	/* ZGC */
	expect(&c, 0x7f7480000000, OWNER_JVM, "java heap", 2048 * KIB);
	scene_end(&c);
	/* where HotSpot's own description cannot be read, code still has its shape */
	scene_start(&c, "smaps/jvm");
	c.f.reserver = OWNER_JVM;
	c.f.reserve_min = 64 * KIB;
	scene_run(&c);
	expect(&c, 0x7f7459400000, OWNER_JVM, "code", 136 * KIB);
	scene_end(&c);
}

Test(owners, jemalloc)
{
	struct scene c;

	scene_start(&c, "smaps/jemalloc");
	c.f.rest = OWNER_JEMALLOC;
	c.f.rest_min = 2 * MIB;
	claim(&c, CLAIM_STACK, 0x7f2000800000, 0x7f2001001000, OWNER_THREAD_STACK, "");
	claim(&c, CLAIM_MODULE, 0x55e000110000, 0x55e000120000, OWNER_FILE_PRIVATE, "bss");
	scene_run(&c);
	expect(&c, 0x7f2000000000, OWNER_JEMALLOC, "", 8192 * KIB);
	expect(&c, 0x7f2002000000, OWNER_JEMALLOC, "", 400 * KIB);
	cr_assert_eq(piece_at(&c, 0x7f2002000000, 0)->a.swap, MIB);
	expect(&c, 0x7f2000801000, OWNER_THREAD_STACK, "", 12 * KIB);
	/* too small to be its */
	expect(&c, 0x7f2003000000, OWNER_UNCLAIMED, "anonymous", 28 * KIB);
	scene_end(&c);
}

Test(owners, statically_linked)
{
	struct scene c;

	scene_start(&c, "smaps/static");
	c.f.brk = OWNER_GLIBC_MAIN;
	claim(&c, CLAIM_MODULE, 0x4b5000, 0x4bb000, OWNER_FILE_PRIVATE, "bss");
	scene_run(&c);
	cr_assert_eq(piece_at(&c, 0x4b5000, 0)->owner, OWNER_FILE_PRIVATE);
	cr_assert_eq(piece_at(&c, 0x4bb000, 0)->owner, OWNER_GLIBC_MAIN);
	cr_assert_eq(piece_at(&c, 0x4bb000, 0)->start, 0x4bb000);
	scene_end(&c);
	/* nobody knows the allocator */
	scene_start(&c, "smaps/static");
	scene_run(&c);
	expect(&c, 0x4b5000, OWNER_NAMED, "", 100 * KIB);
	scene_end(&c);
}

Test(owners, container)
{
	struct scene c;
	struct mounts m = { .memory = { { 0, 0x31 } }, .n = 1 };

	scene_start(&c, "smaps/overlay");
	c.f.mounts = &m;
	scene_run(&c);
	expect(&c, 0x7f0000000000, OWNER_FILE_TEXT, "", 512 * KIB);
	expect(&c, 0x7f0000200000, OWNER_FILE_TEXT, "", 128 * KIB);
	cr_assert_str_eq(piece_label(piece_at(&c, 0x7f0000200000, 0)), "libold.so");
	expect(&c, 0x7f0000400000, OWNER_SHM, "tmpfs", 300 * KIB);
	/* what a program has written over a private mapping is its own, also on tmpfs */
	expect(&c, 0x7f0000600000, OWNER_SHM, "tmpfs", 100 * KIB);
	expect_copy(&c, 0x7f0000600000, 200 * KIB);
	expect(&c, 0x7f0000800000, OWNER_SHM, "posix", 64 * KIB);
	cr_assert_eq(piece_at(&c, 0x7f0000800000, 0)->a.swap, 32 * KIB);
	expect(&c, 0x7f0000a00000, OWNER_SHM, "memfd", 16 * KIB);
	cr_assert_str_eq(piece_label(piece_at(&c, 0x7f0000a00000, 0)), "x/y");
	expect(&c, 0x7f0000c00000, OWNER_SHM, "system v", 24 * KIB);
	expect(&c, 0x7f0000e00000, OWNER_SHM, "anonymous", 40 * KIB);
	expect(&c, 0x7f0001000000, OWNER_FILE_DATA, "device", 0);
	expect(&c, 0x7f0001010000, OWNER_NAMED, "", 8 * KIB);
	expect(&c, 0x7f0001200000, OWNER_NAMED, "huge page pool", 0);
	cr_assert_eq(c.o.total.hugetlb, 4 * MIB);
	expect(&c, 0x7f0001600000, OWNER_VDSO, "", 0);
	expect(&c, 0x7f0001700000, OWNER_SHM, "anonymous", 12 * KIB);
	scene_end(&c);
}

/* ---- claims */

Test(owners, claims_that_overlap)
{
	static const char text[] = "10000-20000 rw-p 0 0:0 0\nRss: 64 kB\n";
	static const struct {
		uint64_t start, end;
		enum owner owner;
	} want[] = {
		{ 0x10000, 0x12000, OWNER_UNCLAIMED },	 { 0x12000, 0x14000, OWNER_JVM },
		{ 0x14000, 0x16000, OWNER_GLIBC_ARENA }, { 0x16000, 0x17000, OWNER_GLIBC_MAIN },
		{ 0x17000, 0x18000, OWNER_JVM },	 { 0x18000, 0x19000, OWNER_THREAD_STACK },
		{ 0x19000, 0x20000, OWNER_UNCLAIMED },
	};
	struct scene c;

	cr_assert_eq(smaps_parse(text, strlen(text), &c.s), 0);
	owner_facts_init(&c.f);
	/* added in any order; within a class the one that begins first keeps what it has */
	claim(&c, CLAIM_RUNTIME, 0x12000, 0x19000, OWNER_JVM, "");
	claim(&c, CLAIM_STACK, 0x18000, 0x19000, OWNER_THREAD_STACK, "");
	claim(&c, CLAIM_ALLOCATOR, 0x15000, 0x17000, OWNER_GLIBC_MAIN, "");
	claim(&c, CLAIM_ALLOCATOR, 0x14000, 0x16000, OWNER_GLIBC_ARENA, "");
	claim(&c, CLAIM_ALLOCATOR, 0x14000, 0x15000, OWNER_GLIBC_MMAPPED, "");
	/* beyond every mapping */
	claim(&c, CLAIM_STACK, 0x30000, 0x40000, OWNER_THREAD_STACK, "");
	scene_run(&c);
	cr_assert_eq(c.o.n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < c.o.n; i++) {
		cr_assert_eq(c.o.v[i].start, want[i].start);
		cr_assert_eq(c.o.v[i].end, want[i].end);
		cr_assert_eq(c.o.v[i].owner, want[i].owner, "piece %zu is %s", i,
			     owner_name(c.o.v[i].owner));
	}
	cr_assert_eq(owner_claim(&c.f, CLAIM_STACK, &(struct claim){ .start = 5, .end = 5 }),
		     -EINVAL);
	cr_assert_eq(
		owner_claim(&c.f, CLAIM_STACK, &(struct claim){ .start = 5, .end = UINT64_MAX }),
		-EINVAL);
	scene_end(&c);
}

static void assign_any(const char *text, size_t len)
{
	struct scene c;

	if (smaps_parse(text, len, &c.s))
		return;
	owner_facts_init(&c.f);
	c.f.go = true;
	c.f.reserver = OWNER_JVM;
	c.f.rest = OWNER_JEMALLOC;
	claim(&c, CLAIM_STACK, 0x7f10077ff000, 0x7f1008000000, OWNER_THREAD_STACK, "");
	claim(&c, CLAIM_ALLOCATOR, 0x55d0a1000123, 0x7f1004000001, OWNER_GLIBC_MAIN, "");
	cr_assert_eq(owners_assign(&c.s, &c.f, &c.o), 0);
	scene_end(&c);
}

Test(owners, fuzz)
{
	size_t len;
	char *text = fixture_read("smaps/threads", &len);

	fuzz_text(text, len, 1000, assign_any);
	free(text);
}

/* ---- heaps of glibc's arenas */

struct memory_at {
	uint64_t addr;
	uint64_t word[4];
};

static const struct memory_at *there;
static size_t there_n;

static int peek(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	for (size_t i = 0; i < there_n; i++) {
		if (there[i].addr != addr)
			continue;
		cr_assert_leq(len, sizeof(there[i].word));
		memcpy(buf, there[i].word, len);
		return 0;
	}
	return -EFAULT;
}

static size_t heaps(const struct memory_at *v, size_t n, struct glibc_ranges *r)
{
	struct scene c;

	there = v;
	there_n = n;
	scene_start(&c, "smaps/threads");
	cr_assert_eq(glibc_ranges_from_maps(&c.s, &(struct reader){ .read = peek }, r), 0);
	smaps_free(&c.s);
	return r->n;
}

#define ARENA(heap) ((heap) + 48)

Test(owners, arena_heaps)
{
	const uint64_t a = 0x7f1000000000, b = 0x7f1008000000;
	const struct memory_at good[] = {
		{ a, { ARENA(a), 0, 0x300000, 0x300000 } },
		/* a second heap of the same arena; it lies behind a stack in one mapping */
		{ b, { ARENA(a), a, 0x100000, 0x200000 } },
	};
	struct memory_at bad[] = {
		{ a, { ARENA(a), 0, 0x300000, 0x300000 } },
		{ b, { ARENA(a), a, 0x100000, 0x200000 } },
	};
	struct glibc_ranges r;

	cr_assert_eq(heaps(good, 2, &r), 2);
	cr_assert_eq(r.v[0].start, a);
	cr_assert_eq(r.v[0].end, a + 64 * MIB);
	cr_assert_eq(r.v[1].start, b);
	cr_assert_eq(r.v[1].owner, OWNER_GLIBC_ARENA);
	glibc_ranges_free(&r);
	/* anything that does not fit is no heap */
	bad[1].word[2] = 0x101000; /* not as long as what is accessible */
	cr_assert_eq(heaps(bad, 2, &r), 1);
	glibc_ranges_free(&r);
	bad[1] = good[1];
	bad[1].word[0] = ARENA(b); /* an arena that does not say so itself */
	bad[1].word[1] = 0;
	cr_assert_eq(heaps(bad, 2, &r), 2); /* this one does */
	glibc_ranges_free(&r);
	bad[1].word[1] = a + 4096; /* no heap before it can be there */
	cr_assert_eq(heaps(bad, 2, &r), 1);
	glibc_ranges_free(&r);
	bad[1] = good[1];
	bad[1].word[3] = 0xff000; /* shrunk below what was once accessible */
	cr_assert_eq(heaps(bad, 2, &r), 1);
	glibc_ranges_free(&r);
	bad[0].word[0] = 0;
	cr_assert_eq(heaps(bad, 2, &r), 0);
	glibc_ranges_free(&r);
	cr_assert_eq(heaps(NULL, 0, &r), 0);
	glibc_ranges_free(&r);
}
