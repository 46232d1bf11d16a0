// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/usage.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../inject/maps.h"
#include "child.h"

Test(usage, rollup)
{
	struct usage u;
	size_t len;
	char *text = fixture_read("proc/smaps_rollup", &len);

	cr_assert_eq(usage_parse(text, &u), 0);
	cr_assert_eq(u.rss, 4012332ULL * 1024);
	cr_assert_eq(u.pss, 3998100ULL * 1024);
	cr_assert_eq(u.anon, 3987121ULL * 1024);
	cr_assert_eq(u.pss_anon, 3987120ULL * 1024);
	cr_assert_eq(u.swap, 102400ULL * 1024);
	cr_assert_eq(u.lazyfree, 4096ULL * 1024);
	cr_assert_eq(u.locked, 12ULL * 1024);
	cr_assert_eq(u.anon_huge, 204800ULL * 1024);
	cr_assert_eq(u.shmem_huge, 2048ULL * 1024);
	cr_assert_eq(u.private_dirty, 3987120ULL * 1024);
	free(text);
}

Test(usage, smaps_are_added_up)
{
	struct usage u;
	size_t len;
	char *text = fixture_read("proc/smaps", &len);

	cr_assert_eq(usage_parse(text, &u), 0);
	cr_assert_eq(u.rss, 108 * 1024);
	cr_assert_eq(u.pss, 104 * 1024);
	cr_assert_eq(u.anon, 100 * 1024);
	cr_assert_eq(u.swap, 20 * 1024);
	cr_assert_eq(u.lazyfree, 4 * 1024);
	cr_assert_eq(u.locked, 8 * 1024);
	cr_assert_eq(u.private_dirty, 96 * 1024);
	free(text);
}

Test(usage, statm)
{
	uint64_t pages = 0;

	cr_assert_eq(usage_parse_statm("1026561 1003083 905 41 0 1010312 0\n", &pages), 0);
	cr_expect_eq(pages, 1003083u);
	cr_expect_eq(usage_parse_statm("1026561", &pages), -EINVAL);
	cr_expect_eq(usage_parse_statm("", &pages), -EINVAL);
	cr_expect_eq(usage_parse_statm("x 1", &pages), -EINVAL);
}

/* Both ways of asking the kernel agree, up to what its counters may lag. */
Test(usage, rss_is_the_same_as_by_mappings)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct diag d = { 0 };
	uint64_t rss = 0, off;
	struct target t;
	struct usage u;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(usage_read(&t, &u, &d), 0, "%s", d.text);
	cr_assert_eq(usage_rss(&t, &rss), 0);
	off = rss > u.rss ? rss - u.rss : u.rss - rss;
	cr_expect_leq(off, (uint64_t)4 << 20, "%" PRIu64 " and %" PRIu64, rss, u.rss);
	cr_expect_gt(rss, 0u);
	target_close(&t);
	child_end(pid);
}

Test(usage, damaged)
{
	static const char *const bad[] = {
		"",
		"Pss: 1 kB\n",
		"Rss: kB\n",
		"Rss: 1 MB\n",
		"Rss: 1\n",
		"Rss: -1 kB\n",
		"Rss: 1 kBx\n",
		"Rss: 99999999999999999999 kB\n",
		"Rss: 18014398509481984 kB\n",
		"Rss: 18014398509481983 kB\nRss: 18014398509481983 kB\n",
	};
	struct usage u;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(usage_parse(bad[i], &u), -EINVAL, "case %zu", i);
}

static void parse(const char *text, size_t len)
{
	struct usage u;

	(void)len;
	if (usage_parse(text, &u) == 0)
		cr_assert_eq(u.rss % 1024, 0);
}

Test(usage, garbage)
{
	size_t len;
	char *text = fixture_read("proc/smaps", &len);

	fuzz_text(text, len, 20000, parse);
	free(text);
}

static void touch_8m(void *unused)
{
	size_t len = (size_t)8 << 20;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	memset(p, 1, len);
	child_sleep(NULL);
}

Test(usage, of_a_child_agrees_with_its_smaps)
{
	pid_t pid = child_start(touch_8m, NULL);
	struct usage u, sum;
	struct target t;
	struct diag d;
	char *text;
	size_t len;

	cr_assert(child_reach_call(pid, pid, 34 /* pause */));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(usage_read(&t, &u, &d), 0, "%s", d.text);
	cr_assert_eq(proc_read(t.procfd, "smaps", (size_t)64 << 20, &text, &len), 0);
	cr_assert_eq(usage_parse(text, &sum), 0);
	free(text);
	cr_assert_geq(u.anon, 8ULL << 20);
	cr_assert_geq(u.rss, u.anon);
	cr_assert_eq(u.rss, sum.rss);
	cr_assert_eq(u.anon, sum.anon);
	child_end(pid);
	cr_assert_eq(usage_read(&t, &u, &d), -ESRCH);
	cr_assert_eq(d.exit, HM_GONE);
	target_close(&t);
}

/* A directory with one file of it stands for /proc/PID of an older kernel. */
static int old_kernel(char dir[], const char *text, size_t len)
{
	int at, fd;

	cr_assert_not_null(mkdtemp(dir));
	at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(at, "smaps", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
	return at;
}

Test(usage, smaps_where_there_is_no_rollup)
{
	struct diag d = { 0 };
	struct target t = { .procfd = -1 };
	pid_t pid = child_start(child_sleep, NULL);
	size_t len, got;
	char *text = fixture_read("proc/smaps", &len), *large;
	struct usage u;
	char dir[] = "/tmp/heapmedic-usage-XXXXXX";
	int real;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	real = t.procfd;
	t.procfd = old_kernel(dir, text, len);
	cr_assert_eq(usage_read(&t, &u, &d), 0, "%s", d.text);
	cr_expect_eq(u.rss, 108 * 1024);
	/* what is too large is told alike, whoever asked for it */
	cr_expect_eq(maps_text(&t, "smaps_rollup", "smaps", len - 1, &large, &got, &d), -EFBIG);
	cr_expect_eq(d.exit, HM_UNSUPPORTED);
	cr_expect_str_eq(d.code, "maps-too-large");
	cr_expect_not_null(strstr(d.text, "/smaps is"), "%s", d.text);
	free(text);
	cr_expect_eq(unlinkat(t.procfd, "smaps", 0), 0);
	cr_expect_eq(rmdir(dir), 0);
	close(t.procfd);
	t.procfd = real;
	child_end(pid);
	target_close(&t);
}
