// SPDX-License-Identifier: GPL-3.0-or-later
/* The Debian package: it is built, lintian finds no error, and the program in it works. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

static bool is_installed(const char *name)
{
	char command[100];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

/* With what is built already, and without the package of debug symbols, which takes longest. */
static void build(void)
{
	const char *args[] = { "-u",
			       "MAKEFLAGS",
			       "-u",
			       "MAKELEVEL",
			       "-u",
			       "MFLAGS",
			       "DEB_BUILD_OPTIONS=noautodbgsym",
			       "make",
			       "deb",
			       NULL };
	const struct run_opts o = { .program = "env" };
	struct run r;

	run_with(&r, &o, args);
	cr_assert_eq(r.exit, 0, "%s%s", r.out, r.err);
	run_free(&r);
}

static void expect_file(const char *dir, const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s%s", dir, name);
	cr_expect_eq(access(path, R_OK), 0, "%s is not in the package", name);
}

static void check_program(const char *dir)
{
	char path[80], pid[16];
	const char *args[] = { "-p", pid, "--json", "trim", NULL };
	const struct run_opts o = { .program = path };
	struct victim v;
	struct run r;
	json_t *answer;

	snprintf(path, sizeof(path), "%s/usr/bin/heapmedic", dir);
	victim_start_named(&v, "retained", "1", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &o, args);
	run_expect(&r, 0);
	answer = run_json(&r, 0, v.pid, "trim");
	cr_expect_gt(json_int(answer, "result.returned_bytes"), 8000000);
	json_decref(answer);
	run_free(&r);
	victim_stop(&v);
}

Test(package, debian)
{
	static const char *const files[] = {
		"/usr/share/man/man1/heapmedic.1.gz",
		"/usr/share/man/man5/heapmedic-json.5.gz",
		"/usr/share/bash-completion/completions/heapmedic",
		"/usr/share/zsh/vendor-completions/_heapmedic",
		"/usr/share/heapmedic/emergency-trim.hm",
		"/usr/share/doc/heapmedic/copyright",
	};
	const char *lint[] = { "-c",
			       "lintian --allow-root --fail-on error build/deb/heapmedic_*.deb",
			       NULL };
	char dir[] = "/tmp/heapmedic-deb-XXXXXX", unpack[100], remove[64];
	const struct run_opts sh = { .program = "sh" };
	struct run r;

	if (!getenv("HEAPMEDIC_STATIC"))
		cr_skip_test("a program with sanitizers is not packaged");
	if (!is_installed("dpkg-buildpackage") || !is_installed("dh") || !is_installed("lintian"))
		cr_skip_test("dpkg-dev, debhelper or lintian is missing");
	build();
	run_with(&r, &sh, lint);
	cr_expect_eq(r.exit, 0, "%s%s", r.out, r.err);
	cr_expect_null(strstr(r.out, "E: "), "%s", r.out);
	run_free(&r);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(unpack, sizeof(unpack), "dpkg-deb -x build/deb/heapmedic_*.deb %s", dir);
	cr_assert_eq(system(unpack), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		expect_file(dir, files[i]);
	check_program(dir);
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	cr_expect_eq(system(remove), 0);
}
