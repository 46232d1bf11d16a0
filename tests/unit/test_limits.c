// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/limits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../inject/cause.h"
#include "../../inject/cgroup.h"

#define MIB ((uint64_t)1 << 20)

static const char limits_text[] =
	"Limit                     Soft Limit           Hard Limit           Units     \n"
	"Max cpu time              unlimited            unlimited            seconds   \n"
	"Max file size             77                   unlimited            bytes     \n"
	"Max data size             123456               unlimited            bytes     \n"
	"Max stack size            8388608              unlimited            bytes     \n"
	"Max processes             42                   100                  processes \n"
	"Max open files            1024                 524288               files     \n"
	"Max locked memory         8388608              8388608              bytes     \n"
	"Max address space         unlimited            unlimited            bytes     \n";

Test(limits, parses_the_soft_ones)
{
	struct limits l;

	cr_assert_eq(limits_parse(limits_text, &l), 0);
	cr_expect_eq(l.as, LIMIT_NONE);
	cr_expect_eq(l.data, 123456);
	cr_expect_eq(l.fsize, 77);
	cr_expect_eq(l.nproc, 42);
	cr_expect_eq(l.nofile, 1024);
	cr_expect_eq(l.memlock, 8388608);
	cr_expect_eq(limits_parse("", &l), -EINVAL);
	cr_expect_eq(limits_parse("nonsense\n", &l), -EINVAL);
	cr_expect_eq(l.as, LIMIT_NONE);
}

/* A process of a user with room on all sides, and what a session needs. */
static struct room roomy(void)
{
	struct room r = { .limits = { LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 1024, LIMIT_NONE,
				      LIMIT_NONE },
			  .map_count = 65530,
			  .status = { .pid = 7, .name = "x", .uid = { 1000 } } };

	r.status.vm_size = 100 * MIB;
	r.status.vm_data = 50 * MIB;
	return r;
}

static const struct need need = { HM_MODE_PROXY, MIB, MIB / 2, 100 };

static void expect(const struct room *r, const struct need *n, enum cause cause, const char *part)
{
	struct diag d = { 0 };

	cr_expect_lt(limits_judge(r, n, &d), 0);
	cr_expect_str_eq(d.code, cause_row(cause)->code, "%s", d.text);
	cr_expect_not_null(strstr(d.text, part), "\"%s\" lacks \"%s\"", d.text, part);
}

static void expect_room(const struct room *r, const struct need *n)
{
	struct diag d = { 0 };

	cr_expect_eq(limits_judge(r, n, &d), 0, "%s", d.text);
}

/* To the byte: what the kernel lets through is no refusal. */
Test(limits, judges_mappings)
{
	struct room r = roomy();
	struct need n = need;

	expect_room(&r, &n);
	r.limits.as = 101 * MIB;
	expect_room(&r, &n);
	r.limits.as -= 1;
	expect(&r, &n, CAUSE_LIMIT_ADDRESS_SPACE, "104857600 are mapped");
	r.limits.as = 99 * MIB; /* lowered below what there is */
	expect(&r, &n, CAUSE_LIMIT_ADDRESS_SPACE, "RLIMIT_AS");
	r = roomy();
	r.limits.data = 50 * MIB + MIB / 2;
	expect_room(&r, &n);
	r.limits.data -= 1;
	expect(&r, &n, CAUSE_LIMIT_DATA, "524288 more");
	r = roomy();
	n.mappings = 65527;
	expect(&r, &n, CAUSE_LIMIT_MAPPINGS, "65527 mappings");
	r.map_count = LIMIT_NONE;
	expect_room(&r, &n);
}

Test(limits, judges_threads)
{
	struct room r = roomy();
	struct need direct = need;

	direct.mode = HM_MODE_DIRECT;
	r.limits.nproc = 42;
	r.user_threads = 41;
	expect_room(&r, &need);
	r.user_threads = 42;
	expect(&r, &need, CAUSE_LIMIT_PROCESSES, "uid 1000 has 42");
	expect_room(&r, &direct);
	r.status.cap_eff = (uint64_t)1 << CAP_SYS_RESOURCE;
	expect_room(&r, &need);
	r.status.cap_eff = 0;
	r.status.uid[0] = 0;
	expect_room(&r, &need);
	snprintf(r.pids.path, sizeof(r.pids.path), "/a");
	r.pids.limit = 10;
	r.pids.usage = 9;
	expect_room(&r, &need);
	r.pids.usage = 10;
	expect(&r, &need, CAUSE_LIMIT_CGROUP_PIDS, "pids.max of the cgroup /a");
	expect_room(&r, &direct);
	r = roomy();
	r.limits.nofile = 7;
	expect_room(&r, &need);
	r.limits.nofile = 6;
	expect(&r, &need, CAUSE_LIMIT_FILES, "RLIMIT_NOFILE");
	expect_room(&r, &direct);
}

Test(limits, judges_a_memory_cgroup)
{
	struct room r = roomy();
	struct need direct = need;

	direct.mode = HM_MODE_DIRECT;
	snprintf(r.memory.path, sizeof(r.memory.path), "/box");
	r.memory.limit = 64 * MIB;
	r.memory.usage = 60 * MIB;
	expect_room(&r, &need);
	r.memory.usage = 64 * MIB;
	expect(&r, &need, CAUSE_LIMIT_CGROUP_MEMORY, "/box");
	expect(&r, &direct, CAUSE_LIMIT_CGROUP_MEMORY, "67108864 of 67108864");
	/* page cache and swap give way */
	r.memory.reclaimable = 8 * MIB;
	expect_room(&r, &need);
	/* its limit was lowered: what is too much has to be dropped before */
	r.memory.usage = 72 * MIB;
	expect(&r, &need, CAUSE_LIMIT_CGROUP_MEMORY, "75497472 of 67108864");
	r.memory.reclaimable = 9 * MIB;
	expect_room(&r, &need);
	/* where nothing limits */
	r.memory = (struct cgroup_limit){ .limit = CGROUP_NO_LIMIT, .usage = 64 * MIB };
	expect_room(&r, &need);
}

/* ---- cgroups, in a tree of our own making */

static char top[] = "/tmp/cgroup_XXXXXX";
static char made[16][PATH_MAX];
static size_t n_made;

static const char *at(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", top, name);
	return path;
}

static void remember(const char *path)
{
	cr_assert_lt(n_made, 16);
	snprintf(made[n_made++], PATH_MAX, "%s", path);
}

static void make_dir(const char *name)
{
	cr_assert_eq(mkdir(at(name), 0700), 0, "%s", at(name));
	remember(at(name));
}

static void make_file(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
	remember(at(name));
}

static void make_tree(void)
{
	cr_assert_not_null(mkdtemp(top));
	make_dir("/a");
	make_dir("/a/b");
}

static void remove_tree(void)
{
	while (n_made)
		remove(made[--n_made]);
	rmdir(top);
}

static bool tightest(const char *mounts, const char *groups, enum cgroup_kind kind,
		     struct cgroup_limit *out)
{
	struct cgroup c = { .kind = kind, .dir = -1 };
	const char *controller = cgroup_controller(kind);
	bool known;

	if (cgroup_parse_self(groups, controller, &c.place) == 0 &&
	    cgroup_parse_mounts(mounts, controller, &c.place) == 0) {
		c.dir = open(c.place.mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
		cr_assert_geq(c.dir, 0);
	}
	known = cgroup_tightest(&c, out);
	if (c.dir >= 0)
		close(c.dir);
	return known;
}

static void mount_line(char *buf, size_t size, const char *root, const char *rest)
{
	snprintf(buf, size,
		 "22 1 0:20 / /proc rw,relatime - proc proc rw\n"
		 "30 22 0:25 %s %s rw,nosuid shared:9 - %s\n",
		 root, top, rest);
}

Test(limits, cgroups_of_version_2, .init = make_tree, .fini = remove_tree)
{
	struct cgroup_limit l;
	char mounts[8192];

	make_file("/a/memory.max", "67108864\n");
	make_file("/a/memory.current", "67000000\n");
	make_file("/a/memory.stat",
		  "anon 1\nactive_file 300\ninactive_file 4000\nfile_dirty 100\n");
	make_file("/a/b/memory.max", "max\n");
	make_file("/a/b/memory.current", "1000\n");
	make_file("/a/b/pids.max", "5\n");
	make_file("/a/b/pids.current", "5\n");
	mount_line(mounts, sizeof(mounts), "/", "cgroup2 cgroup2 rw");
	tightest(mounts, "0::/a/b\n", CGROUP_MEMORY, &l);
	cr_expect_str_eq(l.path, "/a", "what is above limits too");
	cr_expect_eq(l.limit, 67108864);
	cr_expect_eq(l.usage, 67000000);
	cr_expect_geq(l.reclaimable, 4200);
	tightest(mounts, "0::/a/b\n", CGROUP_PIDS, &l);
	cr_expect_str_eq(l.path, "/a/b");
	cr_expect_eq(l.limit, 5);
	cr_expect_eq(l.below, 4);
	/* a mount that shows only a part of the tree, and a path that lies outside of it */
	mount_line(mounts, sizeof(mounts), "/docker/x", "cgroup2 cgroup2 rw");
	tightest(mounts, "0::/docker/x/a/b\n", CGROUP_PIDS, &l);
	cr_expect_eq(l.usage, 5);
	tightest(mounts, "0::/docker/xy/a/b\n", CGROUP_PIDS, &l);
	cr_expect_str_eq(l.path, "");
	tightest(mounts, "0::/../a/b\n", CGROUP_PIDS, &l);
	cr_expect_str_eq(l.path, "");
}

Test(limits, cgroups_of_version_1, .init = make_tree, .fini = remove_tree)
{
	struct cgroup_limit l;
	char mounts[8192];

	make_file("/memory.limit_in_bytes", "9223372036854771712\n");
	make_file("/memory.usage_in_bytes", "1\n");
	make_file("/a/memory.limit_in_bytes", "1048576\n");
	make_file("/a/memory.usage_in_bytes", "1048576\n");
	make_file("/a/memory.stat", "cache 5\ninactive_file 10\ntotal_inactive_file 50\n"
				    "total_active_file 7\ntotal_dirty 7\n");
	mount_line(mounts, sizeof(mounts), "/", "cgroup cgroup rw,memory");
	tightest(mounts, "9:cpu,memory:/a\n0::/\n", CGROUP_MEMORY, &l);
	cr_expect_str_eq(l.path, "/a");
	cr_expect_eq(l.limit, 1048576);
	cr_expect_geq(l.reclaimable, 50);
	tightest(mounts, "9:cpu,memory:/\n0::/\n", CGROUP_MEMORY, &l);
	cr_expect_str_eq(l.path, "", "the top one has no limit");
	cr_expect_eq(l.limit, CGROUP_NO_LIMIT);
	cr_expect_eq(l.usage, 1, "what its own uses");
	tightest(mounts, "9:cpu,memory:/a\n0::/\n", CGROUP_PIDS, &l);
	cr_expect_str_eq(l.path, "");
	tightest("", "9:memory:/a", CGROUP_MEMORY, &l);
	cr_expect_str_eq(l.path, "");
	tightest(mounts, "nonsense\n::\n", CGROUP_MEMORY, &l);
	cr_expect_str_eq(l.path, "");
}
