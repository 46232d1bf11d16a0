// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/memory_cgroup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"

static const char hybrid[] = "9:name=systemd:/x\n8:pids:/\n4:cpu,memory:/docker/abc\n0::/y\n";
static const char unified[] = "0::/system.slice/redis server.service\n";

static const char mounts_v1[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:3 - cgroup cgroup rw,cpu\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 master:1 - cgroup cgroup "
	"rw,memory\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

Test(cgroup, the_memory_controller_comes_first)
{
	struct cgroup_place p;

	cr_assert_eq(cgroup_parse_self(hybrid, "memory", &p), 0);
	cr_assert_eq(p.version, 1);
	cr_assert_str_eq(p.path, "/docker/abc");
	cr_assert_eq(cgroup_parse_self(unified, "memory", &p), 0);
	cr_assert_eq(p.version, 2);
	cr_assert_str_eq(p.path, "/system.slice/redis server.service");
	cr_assert_eq(cgroup_parse_self("8:pids:/\n9:memoryless:/\n", "memory", &p), -ENOENT);
	cr_assert_eq(p.version, 0);
	cr_assert_eq(cgroup_parse_self("", "memory", &p), -ENOENT);
	cr_assert_eq(cgroup_parse_self("memory\n:::\n::", "memory", &p), 0,
		     "an empty path is the root's");
	/* each controller may be in another hierarchy */
	cr_assert_eq(cgroup_parse_self(hybrid, "pids", &p), 0);
	cr_assert_eq(p.version, 1);
	cr_assert_str_eq(p.path, "/");
	cr_assert_eq(cgroup_parse_self(hybrid, "io", &p), 0);
	cr_assert_eq(p.version, 2);
	cr_assert_str_eq(p.path, "/y");
}

Test(cgroup, mounts)
{
	struct cgroup_place p;

	cr_assert_eq(cgroup_parse_self(hybrid, "memory", &p), 0);
	cr_assert_eq(cgroup_parse_mounts(mounts_v1, "memory", &p), 0);
	cr_assert_str_eq(p.mount, "/sys/fs/cgroup/memory");
	cr_assert_str_eq(p.below, "/docker/abc");
	cr_assert_eq(cgroup_parse_self(unified, "memory", &p), 0);
	cr_assert_eq(
		cgroup_parse_mounts("41 31 0:38 / /a\\040b rw - cgroup2 none rw\n", "memory", &p),
		0);
	cr_assert_str_eq(p.mount, "/a b");
	cr_assert_str_eq(p.below, "/system.slice/redis server.service");
	cr_assert_eq(cgroup_parse_mounts("", "memory", &p), -ENOENT);
	cr_assert_eq(cgroup_parse_mounts("41 31 0:38 / /a rw\n1 2 3\n", "memory", &p), -ENOENT);
}

/* Two containers' file systems and the host's: only the host's shows the limits above. */
Test(cgroup, the_mount_that_shows_most)
{
	static const char several[] = "1 2 0:3 /docker/abc /c/abc rw - cgroup2 cgroup rw\n"
				      "1 2 0:3 /docker /c/all rw - cgroup2 cgroup rw\n"
				      "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate\n"
				      "1 2 0:3 / /again rw - cgroup2 cgroup rw\n"
				      "1 2 0:3 /docker /c/other rw - cgroup2 cgroup rw\n";
	struct cgroup_place p;

	cr_assert_eq(cgroup_parse_self("0::/docker/abc\n", "pids", &p), 0);
	cr_assert_eq(cgroup_parse_mounts(several, "pids", &p), 0);
	cr_assert_str_eq(p.mount, "/sys/fs/cgroup");
	cr_assert_str_eq(p.below, "/docker/abc");
	/* a mount from outside of our cgroup namespace does not say what lies between */
	cr_assert_eq(cgroup_parse_self("0::/\n", "pids", &p), 0);
	cr_assert_eq(cgroup_parse_mounts("1 2 0:3 /../.. /m rw - cgroup2 c rw\n", "pids", &p),
		     -ENOENT);
}

/* Each line is all that it should be, but of another cgroup. What looks at the rest of the text for
 * each of them does not come to an end here. */
Test(cgroup, a_long_mountinfo, .timeout = 120)
{
	static const char line[] =
		"1 2 0:3 /docker/other /m rw shared:1 - cgroup cgroup rw,memory\n";
	static const char last[] = "1 2 0:3 /docker /last\\134 rw - cgroup cgroup rw,memory";
	size_t n = ((size_t)16 << 20) / (sizeof(line) - 1);
	char *text = malloc(n * (sizeof(line) - 1) + sizeof(last)), *end = text;
	struct cgroup_place p;

	cr_assert_not_null(text);
	for (size_t i = 0; i < n; i++)
		end = mempcpy(end, line, sizeof(line) - 1);
	memcpy(end, last, sizeof(last));
	cr_assert_eq(cgroup_parse_self(hybrid, "memory", &p), 0);
	cr_assert_eq(cgroup_parse_mounts(text, "memory", &p), 0);
	cr_assert_str_eq(p.mount, "/last\\");
	cr_assert_str_eq(p.below, "/abc");
	free(text);
}

/* A container's mount shows its own cgroup as the root of the hierarchy. */
Test(cgroup, a_mount_of_a_part)
{
	static const char part[] = "1 2 0:3 /docker/abc /m rw - cgroup cgroup rw,memory\n";
	static const char other[] = "1 2 0:3 /docker/ab /m rw - cgroup cgroup rw,memory\n";
	struct cgroup_place p;

	cr_assert_eq(cgroup_parse_self(hybrid, "memory", &p), 0);
	cr_assert_eq(cgroup_parse_mounts(part, "memory", &p), 0);
	cr_assert_str_eq(p.below, "");
	cr_assert_eq(cgroup_parse_mounts(other, "memory", &p), -ENOENT,
		     "a longer name is another cgroup");
	/* outside of our cgroup namespace: only a mount of that very part shows it */
	cr_assert_eq(cgroup_parse_self("0::/../other/x\n", "memory", &p), 0);
	cr_assert_eq(cgroup_parse_mounts("1 2 0:3 / /m rw - cgroup2 c rw\n", "memory", &p),
		     -ENOENT);
	cr_assert_eq(cgroup_parse_mounts("1 2 0:3 /../other /m rw - cgroup2 c rw\n", "memory", &p),
		     0);
	cr_assert_str_eq(p.below, "/x");
}

Test(cgroup, keys_and_pressure)
{
	static const char stat[] = "anon 12\nfile 4096\ninactive_file 8192\n";
	double some, full;
	uint64_t v;

	cr_assert_eq(cgroup_parse_key(stat, "inactive_file", &v), 0);
	cr_assert_eq(v, 8192);
	cr_assert_eq(cgroup_parse_key(stat, "inactive", &v), -ENOENT, "only the whole word");
	cr_assert_eq(cgroup_parse_key("oom_kill x\n", "oom_kill", &v), -ENOENT);
	cr_assert_eq(cgroup_parse_pressure("some avg10=1.50 avg60=0.00 avg300=0.00 total=1\n"
					   "full avg10=0.25 avg60=0.00 avg300=0.00 total=1\n",
					   &some, &full),
		     0);
	cr_assert_eq(some, 1.5);
	cr_assert_eq(full, 0.25);
	cr_assert_eq(cgroup_parse_pressure("", &some, &full), -EINVAL);
	cr_assert_eq(cgroup_parse_pressure("some avg10=nan", &some, &full), -EINVAL);
}

static void read_text(const char *text, size_t len)
{
	struct cgroup_place p;
	double some, full;
	uint64_t v;

	cr_assert_eq(text[len], '\0');
	if (cgroup_parse_self(text, "memory", &p) == 0)
		cr_assert_lt(strlen(p.path), CGROUP_PATH);
	p.version = 1 + (int)(len % 2);
	if (cgroup_parse_mounts(text, len % 3 ? "memory" : "pids", &p) == 0)
		cr_assert(strstr(p.below, "/..") == NULL);
	if (cgroup_parse_key(text, "anon", &v) == 0)
		cr_assert_neq(strstr(text, "anon"), NULL);
	if (cgroup_parse_pressure(text, &some, &full) == 0)
		cr_assert(some >= 0 && full >= 0);
}

Test(cgroup, damaged_text)
{
	fuzz_text(mounts_v1, sizeof(mounts_v1) - 1, 3000, read_text);
	fuzz_text(hybrid, sizeof(hybrid) - 1, 3000, read_text);
}

Test(cgroup, room)
{
	struct cgroup_limit l = { .usage = 900, .limit = 1000, .reclaimable = 300 };

	cr_assert_eq(cgroup_room(&l), 400);
	l.usage = 1200;
	cr_assert_eq(cgroup_room(&l), 100);
	l.reclaimable = 0;
	cr_assert_eq(cgroup_room(&l), 0);
	l.limit = CGROUP_NO_LIMIT;
	cr_assert_eq(cgroup_room(&l), CGROUP_NO_LIMIT);
	l.reclaimable = 10;
	cr_assert_eq(cgroup_room(&l), CGROUP_NO_LIMIT);
}

/* ---- on real ones of this machine, where there are some that we may make: nested, the outer is
 * limited */

struct nest {
	const char *top; /* the mount point */
	char outer[64], inner[96];
	int version;
	pid_t pid; /* of the child in the inner one */
	struct target t;
};

static bool write_number(const char *dir, const char *name, long value)
{
	char path[128];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		return false;
	ok = fprintf(f, "%ld\n", value) > 0;
	return fclose(f) == 0 && ok;
}

static bool try_nest(struct nest *n, int version, const char *top, const char *limit)
{
	snprintf(n->outer, sizeof(n->outer), "%s/heapmedic-XXXXXX", top);
	if (!mkdtemp(n->outer))
		return false;
	if (!write_number(n->outer, limit, 64L << 20)) {
		rmdir(n->outer);
		return false;
	}
	n->top = top;
	n->version = version;
	return true;
}

static void nest_make(struct nest *n)
{
	struct diag d;

	if (!try_nest(n, 1, "/sys/fs/cgroup/memory", "memory.limit_in_bytes") &&
	    !try_nest(n, 2, "/sys/fs/cgroup", "memory.max"))
		cr_skip_test("no memory cgroup can be made here (it takes root)");
	snprintf(n->inner, sizeof(n->inner), "%s/in", n->outer);
	cr_assert_eq(mkdir(n->inner, 0700), 0);
	n->pid = child_start(child_sleep, NULL);
	cr_assert(write_number(n->inner, "cgroup.procs", n->pid));
	cr_assert_eq(target_open(n->pid, &n->t, &d), 0);
}

static void nest_remove(struct nest *n)
{
	target_close(&n->t);
	child_end(n->pid);
	cr_assert_eq(rmdir(n->inner), 0);
	cr_assert_eq(rmdir(n->outer), 0);
}

static void expect_outer(const struct nest *n, const struct memory_cgroup *c)
{
	const struct cgroup_limit *l = &c->tightest;

	cr_expect_eq(c->version, n->version);
	cr_expect_eq(l->limit, 64 << 20);
	cr_expect_lt(l->usage, l->limit);
	cr_expect_gt(cgroup_room(l), 0);
	cr_expect_eq(c->high, CGROUP_NO_LIMIT);
	cr_expect_eq(c->oom_kills, 0);
	cr_expect_not_null(strstr(c->path, "/in"));
	cr_expect_not_null(strstr(l->path, "heapmedic-"));
	cr_expect_null(strstr(l->path, "/in"), "the limit is that of %s", l->path);
}

Test(cgroup, a_real_limit_above_counts)
{
	struct memory_cgroup c;
	struct nest n;

	nest_make(&n);
	memory_cgroup_read(&n.t, &c);
	nest_remove(&n);
	expect_outer(&n, &c);
}

static int unmount_cgroups(const struct nest *n)
{
	(void)n;
	return umount2("/sys/fs/cgroup", MNT_DETACH);
}

/* Like another container than the process: its cgroup's path begins with /.. for us. */
static int enter_namespace(const struct nest *n)
{
	return unshare(CLONE_NEWCGROUP) ? -1 : unmount_cgroups(n);
}

/* It stays in our mountinfo, and what lies over it has directories of the same names. */
static int cover_cgroups(const struct nest *n)
{
	if (mount("none", n->top, "tmpfs", 0, NULL) || mkdir(n->outer, 0700))
		return -1;
	return mkdir(n->inner, 0700);
}

/* Reads in a mount namespace of our own where hide() has taken all cgroups out of sight. */
static void look_without(int (*hide)(const struct nest *n))
{
	struct cgroup held[CGROUP_KINDS];
	struct memory_cgroup c;
	int ours, hidden;
	struct nest n;

	nest_make(&n);
	ours = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(ours, 0);
	cr_assert_eq(unshare(CLONE_NEWNS), 0);
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	hidden = hide(&n);
	memory_cgroup_read(&n.t, &c);
	cgroup_open(&n.t, true, held);
	cr_assert_eq(setns(ours, CLONE_NEWNS), 0);
	close(ours);
	nest_remove(&n);
	cr_assert_eq(hidden, 0);
	expect_outer(&n, &c);
	cr_expect_eq(held[CGROUP_MEMORY].dir, -1, "only ours were to be asked");
	cgroup_close(held);
}

Test(cgroup, through_the_mounts_of_the_process)
{
	look_without(unmount_cgroups);
}

Test(cgroup, of_another_cgroup_namespace)
{
	look_without(enter_namespace);
}

Test(cgroup, a_mount_that_another_one_covers)
{
	look_without(cover_cgroups);
}
