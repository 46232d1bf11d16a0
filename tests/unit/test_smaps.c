// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/smaps.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../inject/mounts.h"
#include "../../inject/usage.h"
#include "child.h"

#define KIB 1024ULL

static void read_fixture(const char *name, struct smaps *s)
{
	size_t len;
	char *text = fixture_read(name, &len);

	cr_assert_eq(smaps_parse(text, len, s), 0);
	free(text); /* the names are copies */
}

static int parse(const char *text, struct smaps *s)
{
	return smaps_parse(text, strlen(text), s);
}

Test(smaps, every_figure)
{
	static const char text[] = "7f0000000000-7f0000400000 rw-p 00001000 fe:01 12 /a b\n"
				   "Size:               4096 kB\n"
				   "KernelPageSize:        4 kB\n"
				   "MMUPageSize:           4 kB\n"
				   "Rss:                   1 kB\n"
				   "Pss:                   2 kB\n"
				   "Pss_Dirty:             3 kB\n"
				   "Shared_Clean:          4 kB\n"
				   "Shared_Dirty:          5 kB\n"
				   "Private_Clean:         6 kB\n"
				   "Private_Dirty:         7 kB\n"
				   "Referenced:            8 kB\n"
				   "Anonymous:             9 kB\n"
				   "KSM:                  10 kB\n"
				   "LazyFree:             11 kB\n"
				   "AnonHugePages:        12 kB\n"
				   "ShmemPmdMapped:       13 kB\n"
				   "FilePmdMapped:        14 kB\n"
				   "Shared_Hugetlb:       15 kB\n"
				   "Private_Hugetlb:      16 kB\n"
				   "Swap:                 17 kB\n"
				   "SwapPss:              18 kB\n"
				   "Locked:               19 kB\n"
				   "THPeligible:           1\n"
				   "ProtectionKey:         0\n"
				   "VmFlags: rd wr mr mw me lo ht hg zz dd \n";
	struct smaps s;
	const struct smaps_row *r;

	cr_assert_eq(parse(text, &s), 0);
	cr_assert_eq(s.n, 1);
	cr_assert_not(s.torn);
	r = &s.v[0];
	cr_assert_str_eq(r->map.name, "/a b");
	cr_assert_eq(r->map.start, 0x7f0000000000);
	cr_assert_eq(r->map.prot, PROT_READ | PROT_WRITE);
	cr_assert_eq(r->page_size, 4 * KIB);
	const uint64_t got[] = {
		r->rss,		 r->pss,	   r->pss_dirty,      r->shared_clean,
		r->shared_dirty, r->private_clean, r->private_dirty,  r->referenced,
		r->anon,	 r->ksm,	   r->lazyfree,	      r->anon_huge,
		r->shmem_huge,	 r->file_huge,	   r->shared_hugetlb, r->private_hugetlb,
		r->swap,	 r->swap_pss,	   r->locked
	};
	for (size_t i = 0; i < sizeof(got) / sizeof(got[0]); i++)
		cr_assert_eq(got[i], (i + 1) * KIB, "figure %zu is %llu", i,
			     (unsigned long long)got[i]);
	cr_assert_eq(r->flags,
		     SMAPS_LOCKED | SMAPS_HUGETLB | SMAPS_HUGE_ADVISED | SMAPS_NOT_DUMPED);
	smaps_free(&s);
	cr_assert_null(s.v);
}

/* Two parsers over the same text agree. */
Test(smaps, adds_up_like_usage)
{
	static const char *const names[] = { "smaps/threads", "smaps/go",     "smaps/go-names",
					     "smaps/jvm",     "smaps/static", "smaps/jemalloc",
					     "smaps/overlay", "proc/smaps" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct smaps s;
		struct usage u, sum = { 0 };
		size_t len;
		char *text = fixture_read(names[i], &len);

		read_fixture(names[i], &s);
		cr_assert_not(s.torn, "%s", names[i]);
		cr_assert_eq(usage_parse(text, &u), 0);
		for (size_t k = 0; k < s.n; k++) {
			sum.rss += s.v[k].rss;
			sum.anon += s.v[k].anon;
			sum.swap += s.v[k].swap;
			sum.lazyfree += s.v[k].lazyfree;
			sum.locked += s.v[k].locked;
		}
		cr_assert(sum.rss == u.rss && sum.anon == u.anon && sum.swap == u.swap &&
				  sum.lazyfree == u.lazyfree && sum.locked == u.locked,
			  "%s", names[i]);
		free(text);
		smaps_free(&s);
	}
}

Test(smaps, a_name_is_no_key)
{
	struct smaps s;

	read_fixture("proc/smaps", &s);
	cr_assert_eq(s.n, 2);
	cr_assert_str_eq(s.v[0].map.name, "/tmp/Rss:        99 kB");
	cr_assert_eq(s.v[0].rss, 8 * KIB);
	smaps_free(&s);
}

Test(smaps, damaged)
{
	static const char *const bad[] = {
		"Rss: 1 kB\n",			       /* of no mapping */
		"1000-2000 rw-p 0 0:0 0\nRss: x kB\n", /* no number */
		"1000-2000 rw-p 0 0:0 0\nRss: 1 MB\n", /* another unit */
		"1000-2000 rw-p 0 0:0 0\nRss: 18446744073709551615 kB\n",
		"1000-2000 rw-p 0 0:0 0\n-\n",	       /* neither */
		"1000-2000 rw-p 0 0:0 0\nRss\n",       /* no colon */
		"2000-1000 rw-p 0 0:0 0\nRss: 1 kB\n", /* backwards */
		"1000-2000 rw?p 0 0:0 0\nRss: 1 kB\n",
		"1000-2000\n",
	};
	struct smaps s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(parse(bad[i], &s), -EINVAL, "%s", bad[i]);
	cr_assert_eq(smaps_parse("1000-2000 rw-p 0 0:0 0\nRss: 1\0kB\n", 31, &s), -EINVAL);
	cr_assert_eq(parse("", &s), 0);
	cr_assert_eq(s.n, 0);
	smaps_free(&s);
}

/* A read is not one moment: what is whole is believed. */
Test(smaps, torn)
{
	static const char whole[] = "1000-3000 rw-p 0 0:0 0\nRss: 8 kB\nSwap: 0 kB\n";
	struct smaps s;
	char text[256];

	/* cut at every byte */
	for (size_t cut = 1; cut < sizeof(whole) - 1; cut++) {
		cr_assert_eq(smaps_parse(whole, cut, &s), 0, "cut at %zu", cut);
		cr_assert(s.n <= 1);
		cr_assert(s.torn || whole[cut - 1] == '\n', "cut at %zu", cut);
		cr_assert(s.n == 0 || s.v[0].rss == 0 || s.v[0].rss == 8 * KIB);
		smaps_free(&s);
	}
	cr_assert_eq(parse(whole, &s), 0);
	cr_assert_not(s.torn);
	smaps_free(&s);
	/* merged with a neighbour between two reads: the second goes over the first */
	snprintf(text, sizeof(text), "%s2000-5000 rw-p 0 0:0 0\nRss: 12 kB\n", whole);
	cr_assert_eq(parse(text, &s), 0);
	cr_assert(s.torn);
	cr_assert_eq(s.n, 2);
	cr_assert_eq(s.v[1].map.start, 0x3000);
	cr_assert_eq(s.v[1].rss, 12 * KIB);
	smaps_free(&s);
	/* wholly within it */
	snprintf(text, sizeof(text), "%s2000-2800 rw-p 0 0:0 0\nRss: 4 kB\n", whole);
	cr_assert_eq(parse(text, &s), 0);
	cr_assert(s.torn);
	cr_assert_eq(s.v[1].map.start, s.v[1].map.end);
	smaps_free(&s);
	/* an address without figures, then another mapping */
	cr_assert_eq(parse("1000-2000 rw-p 0 0:0 0\n2000-3000 rw-p 0 0:0 0\nRss: 4 kB\n", &s), 0);
	cr_assert(s.torn);
	cr_assert_eq(s.n, 2);
	smaps_free(&s);
}

static void parse_any(const char *text, size_t len)
{
	struct smaps s;
	int err = smaps_parse(text, len, &s);

	cr_assert(err == 0 || err == -EINVAL);
	for (size_t i = 1; err == 0 && i < s.n; i++)
		cr_assert_geq(s.v[i].map.start, s.v[i - 1].map.end);
	if (err == 0)
		smaps_free(&s);
}

Test(smaps, fuzz)
{
	size_t len;
	char *text = fixture_read("smaps/overlay", &len);

	fuzz_text(text, len, 1500, parse_any);
	free(text);
}

static double parse_time(const char *row, size_t row_len, size_t n)
{
	size_t len = 0;
	char *text = malloc(n * (row_len + 64));
	struct timespec a, b;
	struct smaps s;

	cr_assert_not_null(text);
	for (size_t i = 0; i < n; i++) {
		len += (size_t)sprintf(text + len, "%zx-%zx ", (i + 1) * 0x2000,
				       (i + 1) * 0x2000 + 0x1000);
		memcpy(text + len, row, row_len);
		len += row_len;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	cr_assert_eq(smaps_parse(text, len, &s), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	cr_assert_eq(s.n, n);
	smaps_free(&s);
	free(text);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Linear: four times as many mappings take about four times as long, not sixteen. */
Test(smaps, many_mappings)
{
	size_t len;
	char *text = fixture_read("smaps/overlay", &len);
	char *second = strstr(text + 1, "\n7f");
	char *row = strchr(text, ' ') + 1;
	double few, many;

	cr_assert_not_null(second);
	few = parse_time(row, (size_t)(second + 1 - row), 5000);
	many = parse_time(row, (size_t)(second + 1 - row), 20000);
	cr_assert_lt(many, few * 12 + 0.1, "%.3f s for 5000, %.3f s for 20000", few, many);
	free(text);
}

Test(mounts, memory)
{
	static const char text[] =
		"22 28 0:21 / /sys rw,nosuid - sysfs sysfs rw\n"
		"25 28 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw,size=1k\n"
		"27 28 0:24 / /run rw shared:5 - tmpfs tmpfs rw,mode=755\n"
		"28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
		"30 28 0:26 / /run/a\\040-\\040tmpfs rw - fuse.x tmpfs rw\n"
		"garbage - tmpfs \n"
		"31 28 0:27 / /mnt rw master:1 propagate_from:2 - ramfs none rw";
	struct mounts m;

	mounts_parse(text, &m);
	cr_assert_eq(m.n, 2);
	cr_assert(mounts_in_memory(&m, 0, 24));
	cr_assert(mounts_in_memory(&m, 0, 27));
	cr_assert_not(mounts_in_memory(&m, 0, 26));
	cr_assert_not(mounts_in_memory(&m, 254, 1));
	mounts_parse("", &m);
	cr_assert_eq(m.n, 0);
}
