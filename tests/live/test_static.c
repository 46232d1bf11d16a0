// SPDX-License-Identifier: GPL-3.0-or-later
/* heapmedic-static in a root directory that has nothing else in it, as in an image FROM scratch. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

struct root {
	char dir[64];
};

/* The program and an empty directory for proc. Skips where there can be none. */
static void root_make(struct root *r)
{
	const char *program = getenv("HEAPMEDIC_STATIC");
	char path[80], copy[600];

	if (!program)
		cr_skip_test("a program with sanitizers cannot be linked statically");
	if (geteuid() != 0)
		cr_skip_test("only root can change the root directory");
	snprintf(r->dir, sizeof(r->dir), "/tmp/heapmedic-root-XXXXXX");
	cr_assert_not_null(mkdtemp(r->dir));
	snprintf(path, sizeof(path), "%s/proc", r->dir);
	cr_assert_eq(mkdir(path, 0755), 0, "%s", strerror(errno));
	snprintf(copy, sizeof(copy), "cp '%s' %s/heapmedic", program, r->dir);
	cr_assert_eq(system(copy), 0);
}

static void root_remove(const struct root *r)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/heapmedic", r->dir);
	cr_expect_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/proc", r->dir);
	cr_expect_eq(rmdir(path), 0);
	/* nothing else is there */
	cr_expect_eq(rmdir(r->dir), 0, "%s", strerror(errno));
}

/* heapmedic -p PID WORDS in there, with a mount namespace and an empty environment. */
static void run_inside(struct run *out, const struct root *r, pid_t pid, const char *a,
		       const char *b)
{
	static const char script[] =
		"mount --rbind /proc \"$0/proc\" && "
		"exec env -i PATH=/usr/sbin:/usr/bin chroot \"$0\" /heapmedic -p \"$@\"";
	char number[16];
	const char *args[] = { "-m",   "--propagation", "private", "sh", "-c", script,
			       r->dir, number,		a,	   b,	 NULL };
	const struct run_opts o = { .program = "unshare" };

	snprintf(number, sizeof(number), "%d", (int)pid);
	run_with(out, &o, args);
}

Test(static_program, needs_no_library)
{
	const char *program = getenv("HEAPMEDIC_STATIC");
	const char *args[] = { "-lW", program, NULL };
	const struct run_opts o = { .program = "readelf" };
	struct run r;

	if (!program)
		cr_skip_test("a program with sanitizers cannot be linked statically");
	run_with(&r, &o, args);
	cr_expect_eq(r.exit, 0, "%s", r.err);
	cr_expect_not_null(strstr(r.out, "LOAD"));
	cr_expect_null(strstr(r.out, "INTERP"), "%s", r.out);
	run_free(&r);
}

Test(static_program, works_in_an_empty_root)
{
	static const char *const looks[] = { "check", "facts", "maps", "arenas", "threads", "bt" };
	struct root root = { 0 };
	struct victim v;
	struct run r;

	root_make(&root);
	victim_start_named(&v, "retained", "2", NULL);
	run_inside(&r, &root, v.pid, "diagnose", NULL);
	run_expect(&r, 0);
	cr_expect_eq(strncmp(r.out, "retained: ", 10), 0, "%s", r.out);
	cr_expect_not_null(strstr(r.out, "glibc-arena"), "%s", r.out);
	run_free(&r);
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		run_inside(&r, &root, v.pid, looks[i], NULL);
		run_expect(&r, 0);
		cr_expect_gt(strlen(r.out), 0);
		run_free(&r);
	}
	cr_expect_gt(proc_number(v.pid, "smaps_rollup", "Rss:"), 60000);
	run_inside(&r, &root, v.pid, "trim", "--json");
	run_expect(&r, 0);
	json_decref(run_json(&r, 0, v.pid, "trim"));
	run_free(&r);
	cr_expect_lt(proc_number(v.pid, "smaps_rollup", "Rss:"), 10000);
	victim_stop(&v);
	root_remove(&root);
}
