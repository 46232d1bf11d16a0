// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/cgroup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

	cr_assert_eq(cgroup_parse_self(hybrid, &p), 0);
	cr_assert_eq(p.version, 1);
	cr_assert_str_eq(p.path, "/docker/abc");
	cr_assert_eq(cgroup_parse_self(unified, &p), 0);
	cr_assert_eq(p.version, 2);
	cr_assert_str_eq(p.path, "/system.slice/redis server.service");
	cr_assert_eq(cgroup_parse_self("8:pids:/\n9:memoryless:/\n", &p), -ENOENT);
	cr_assert_eq(cgroup_parse_self("", &p), -ENOENT);
	cr_assert_eq(cgroup_parse_self("memory\n:::\n::", &p), 0, "an empty path is the root's");
}

Test(cgroup, mounts)
{
	struct cgroup_place p;

	cr_assert_eq(cgroup_parse_self(hybrid, &p), 0);
	cr_assert_eq(cgroup_parse_mounts(mounts_v1, &p), 0);
	cr_assert_str_eq(p.mount, "/sys/fs/cgroup/memory");
	cr_assert_str_eq(p.below, "/docker/abc");
	cr_assert_eq(cgroup_parse_self(unified, &p), 0);
	cr_assert_eq(cgroup_parse_mounts("41 31 0:38 / /a\\040b rw - cgroup2 none rw\n", &p), 0);
	cr_assert_str_eq(p.mount, "/a b");
	cr_assert_str_eq(p.below, "/system.slice/redis server.service");
	cr_assert_eq(cgroup_parse_mounts("", &p), -ENOENT);
	cr_assert_eq(cgroup_parse_mounts("41 31 0:38 / /a rw\n1 2 3\n", &p), -ENOENT);
}

/* A container's mount shows its own cgroup as the root of the hierarchy. */
Test(cgroup, a_mount_of_a_part)
{
	static const char part[] = "1 2 0:3 /docker/abc /m rw - cgroup cgroup rw,memory\n";
	static const char other[] = "1 2 0:3 /docker/ab /m rw - cgroup cgroup rw,memory\n";
	struct cgroup_place p;

	cr_assert_eq(cgroup_parse_self(hybrid, &p), 0);
	cr_assert_eq(cgroup_parse_mounts(part, &p), 0);
	cr_assert_str_eq(p.below, "");
	cr_assert_eq(cgroup_parse_mounts(other, &p), -ENOENT, "a longer name is another cgroup");
	/* outside of our cgroup namespace: only a mount of that very part shows it */
	cr_assert_eq(cgroup_parse_self("0::/../other/x\n", &p), 0);
	cr_assert_eq(cgroup_parse_mounts("1 2 0:3 / /m rw - cgroup2 c rw\n", &p), -ENOENT);
	cr_assert_eq(cgroup_parse_mounts("1 2 0:3 /../other /m rw - cgroup2 c rw\n", &p), 0);
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
	if (cgroup_parse_self(text, &p) == 0)
		cr_assert_lt(strlen(p.path), CGROUP_PATH);
	p.version = 1 + (int)(len % 2);
	if (cgroup_parse_mounts(text, &p) == 0)
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
	struct cgroup c = { .version = 2, .used = 900, .limit = 1000, .reclaimable = 300 };

	cr_assert_eq(cgroup_room(&c), 400);
	c.used = 1200;
	cr_assert_eq(cgroup_room(&c), 100);
	c.reclaimable = 0;
	cr_assert_eq(cgroup_room(&c), 0);
	c.limit = CGROUP_NO_LIMIT;
	cr_assert_eq(cgroup_room(&c), CGROUP_NO_LIMIT);
}

/* On a real one of this machine, where there is one that we may make: nested, the outer is limited.
 */
Test(cgroup, a_real_limit_above_counts)
{
	char outer[] = "/sys/fs/cgroup/memory/heapmedic-XXXXXX", inner[64], path[128];
	struct cgroup c;
	struct target t;
	struct diag d;
	FILE *f;
	pid_t pid;

	if (!mkdtemp(outer))
		cr_skip_test("no memory cgroup of version 1 can be made here");
	snprintf(inner, sizeof(inner), "%s/in", outer);
	cr_assert_eq(mkdir(inner, 0700), 0);
	snprintf(path, sizeof(path), "%s/memory.limit_in_bytes", outer);
	f = fopen(path, "w");
	cr_assert(f && fprintf(f, "%d\n", 64 << 20) > 0 && fclose(f) == 0);
	pid = child_start(child_sleep, NULL);
	snprintf(path, sizeof(path), "%s/cgroup.procs", inner);
	f = fopen(path, "w");
	cr_assert(f && fprintf(f, "%d\n", pid) > 0 && fclose(f) == 0);
	cr_assert_eq(target_open(pid, &t, &d), 0);
	cgroup_read(&t, &c);
	target_close(&t);
	child_end(pid);
	cr_assert_eq(rmdir(inner), 0);
	cr_assert_eq(rmdir(outer), 0);
	cr_assert_eq(c.version, 1);
	cr_assert_eq(c.limit, 64 << 20);
	cr_assert_lt(c.used, c.limit);
	cr_assert_not_null(strstr(c.path, "/in"));
	cr_assert_null(strstr(c.limit_path, "/in"), "the limit is that of %s", c.limit_path);
}
