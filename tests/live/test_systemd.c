// SPDX-License-Identifier: GPL-3.0-or-later
/* scripts/systemd: by systemd's own word, and with what the units allow heapmedic. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell.h"
#include "victim.h"

/* A program under a name that nobody else has, so that the name means it alone. */
static const char *start_named(struct victim *v, const char *program)
{
	static char path[96], comm[16];
	const struct victim_plan plan = { .argv = { path, "1" } };
	char script[PATH_MAX + 128];

	snprintf(comm, sizeof(comm), "hmu%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", shell_dir(), comm);
	snprintf(script, sizeof(script), "cp '%s' '%s'", victim_path(program), path);
	shell_ok(script);
	victim_start(v, &plan);
	return comm;
}

/* heapmedic OPTION and what ExecStart= of a unit says with these variables, for a process. */
static void unit(struct run *r, const char *option, const char *file, const char *comm,
		 const char *variables)
{
	const struct run_opts none = { 0 };
	const char *words[RUN_ARGS] = { option };
	char script[400];
	size_t n = 1;

	snprintf(script, sizeof(script), "$ASK unit scripts/systemd/%s %s %s", file, comm,
		 variables);
	shell_words(script, words, &n, RUN_ARGS);
	run_with(r, &none, words);
}

Test(systemd, make_install_puts_them_where_they_belong)
{
	shell_begin();
	/* What is there is installed, whatever it was built with. */
	shell_ok("unset MAKEFLAGS MAKELEVEL MFLAGS; H=$(realpath \"$HEAPMEDIC\"); "
		 "make -s install PROG=\"$H\" -o \"$H\" DOC_FILES= DOCS=\"${DOCS:-build/docs}\" "
		 "PREFIX=/opt/hm DESTDIR=\"$D/root\" && "
		 "cd \"$D/root/opt/hm\" && cmp bin/heapmedic \"$H\"");
	shell_ok("for f in scripts/*.hm; do cmp \"$f\" \"$D/root/opt/hm/share/heapmedic/${f##*/}\" "
		 "|| "
		 "exit 1; done");
	shell_ok("for f in scripts/prometheus/* scripts/grafana/* scripts/kubernetes/* "
		 "scripts/ansible/* scripts/systemd/*.conf; do "
		 "cmp \"$f\" \"$D/root/opt/hm/share/heapmedic/${f#scripts/}\" || exit 1; done");
	/* units name the program where it was put, and nowhere else */
	shell_ok("cd scripts/systemd && for f in *@.*; do "
		 "sed s,/usr/local/bin/,/opt/hm/bin/, \"$f\" | "
		 "cmp - \"$D/root/opt/hm/lib/systemd/system/$f\" || exit 1; done");
	shell_ok("[ $(grep -l ExecStart=/opt/hm/bin/heapmedic "
		 "\"$D\"/root/opt/hm/lib/systemd/system/*.service | wc -l) = 3 ]");
	shell_ok("! grep -r /usr/local/bin \"$D/root/opt/hm/lib\"");
	shell_ok("[ -s \"$D/root/opt/hm/share/man/man1/heapmedic.1\" ]");
	shell_ok("[ -z \"$(find \"$D/root\" -type f ! -perm 644 ! -path '*/bin/heapmedic')\" ]");
	shell_end();
}

Test(systemd, units_are_valid)
{
	shell_begin();
	shell_need("systemd-analyze", "systemd");
	shell_ok("for f in scripts/systemd/*@.*; do sed \"s,^ExecStart=[^ "
		 "]*,ExecStart=/bin/true,\" \"$f\" "
		 ">\"$D/${f##*/}\"; done");
	shell_ok("systemd-analyze verify --man=no \"$D\"/*@.*");
	/* with what is added for a service without a filter */
	shell_ok("cat \"$D/heapmedic-guard@.service\" scripts/systemd/heapmedic-guard-strict.conf "
		 ">\"$D/strict@.service\" && systemd-analyze verify --man=no "
		 "\"$D/strict@.service\"");
	shell_ok("echo ProtectEverything=yes >>\"$D/strict@.service\"");
	/* it complains, and calls it a success */
	shell_fails("systemd-analyze verify --man=no \"$D/strict@.service\" 2>&1; exit 1",
		    "ProtectEverything");
	shell_end();
}

/* In tenths of systemd's score, where 100 is a service that may do anything. */
Test(systemd, units_are_hardened)
{
	shell_begin();
	shell_need("systemd-analyze", "systemd");
	shell_ok("cp scripts/systemd/*.service \"$D\"");
	shell_ok("cat scripts/systemd/heapmedic-guard@.service "
		 "scripts/systemd/heapmedic-guard-strict.conf >\"$D/strict@.service\"");
	shell_ok("for f in heapmedic-guard heapmedic-trim heapmedic-metrics strict; do "
		 "mv \"$D/$f@.service\" \"$D/$f@x.service\"; done");
	shell_ok("S='systemd-analyze security --no-pager --offline=true'; "
		 "$S --threshold=65 \"$D/heapmedic-guard@x.service\" && "
		 "$S --threshold=65 \"$D/heapmedic-trim@x.service\" && "
		 "$S --threshold=25 \"$D/heapmedic-metrics@x.service\" && "
		 "$S --threshold=30 \"$D/strict@x.service\"");
	shell_fails("systemd-analyze security --no-pager --offline=true --threshold=10 "
		    "\"$D/heapmedic-guard@x.service\"",
		    "exposure");
	shell_end();
}

/*
 * Each of these brings a seccomp filter (systemd.exec(5)), and who has one may suspend nobody's
 * (ptrace(2), PTRACE_O_SUSPEND_SECCOMP). Each of the others throttles (see the unit).
 */
Test(systemd, what_acts_is_neither_filtered_nor_throttled)
{
	static const char script[] =
		"sed 's/^#.*//' \"$F\" | grep -E '^(SystemCall(Filter|Architectures|Log)|"
		"Restrict(AddressFamilies|Namespaces|Realtime|SUIDSGID)|LockPersonality|"
		"MemoryDenyWriteExecute|PrivateDevices|DynamicUser|"
		"Protect(Clock|Hostname|Kernel(Logs|Modules|Tunables)|Proc)|ProcSubset|"
		"CPU[A-Za-z]*|Nice|IOSchedulingClass|AllowedCPUs)='";

	shell_begin();
	setenv("F", "scripts/systemd/heapmedic-metrics@.service", 1);
	shell_ok(script);
	setenv("F", "scripts/systemd/heapmedic-guard-strict.conf", 1);
	shell_ok(script);
	setenv("F", "scripts/systemd/heapmedic-guard@.service", 1);
	shell_fails(script, "");
	setenv("F", "scripts/systemd/heapmedic-trim@.service", 1);
	shell_fails(script, "");
	shell_end();
}

/* As it is, but for a time after which it ends. */
Test(systemd, what_they_start_is_a_command_of_ours)
{
	const char *comm;
	struct victim v;
	struct run r;

	shell_begin();
	shell_need("/usr/bin/python3", "python3");
	comm = start_named(&v, "retained");
	unit(&r, "--dry-run", "heapmedic-guard@.service", comm, "MORE='--for 1s'");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, "guard ends: 1 looks, 0 actions"), "%s", r.out);
	run_free(&r);
	unit(&r, "--dry-run", "heapmedic-guard@.service", comm,
	     "WHEN='rss > 1' MORE=\"--clear 'rss < 1' --max 1\"");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, "would call malloc_trim(0)"), "%s", r.out);
	run_free(&r);
	unit(&r, "--dry-run", "heapmedic-trim@.service", comm, "");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, "would call malloc_trim(0)"), "%s", r.out);
	run_free(&r);
	unit(&r, "--quiet", "heapmedic-metrics@.service", comm, "OUTPUT_DIR=\"$D\"");
	run_expect(&r, 0);
	run_free(&r);
	shell_ok("grep -q '^heapmedic_rss{' \"$D\"/heapmedic-hmu*.prom");
	victim_stop(&v);
	/* there is none (any more): the one answer that a timer is content with */
	unit(&r, "--quiet", "heapmedic-trim@.service", comm, "");
	run_expect(&r, 3);
	run_free(&r);
	shell_ok("! grep -L '^SuccessExitStatus=3$' scripts/systemd/heapmedic-trim@.service "
		 "scripts/systemd/heapmedic-metrics@.service | grep .");
	shell_end();
}

/* What a guard does with these capabilities, on a program of another user under a filter that could
 * kill it. */
static int guard_with(const char *capabilities, pid_t pid, struct run *r)
{
	const struct run_opts o = { .program = "setpriv" };
	char number[16];
	const char *args[] = { "--no-new-privs",
			       "--inh-caps=-all",
			       "--bounding-set",
			       capabilities,
			       getenv("HEAPMEDIC"),
			       "-p",
			       number,
			       "guard",
			       "--when",
			       "rss > 1",
			       "--do",
			       "trim",
			       "--max",
			       "1",
			       "--cooldown",
			       "0s",
			       NULL };

	snprintf(number, sizeof(number), "%d", (int)pid);
	run_with(r, &o, args);
	return r->exit;
}

static void without(char *out, size_t size, const char *list, const char *one)
{
	const char *at = strstr(list, one);

	cr_assert_not_null(at, "%s is not in %s", one, list);
	snprintf(out, size, "%.*s%s", (int)(at - list), list, at + strlen(one));
}

Test(systemd, the_guards_capabilities_suffice, .timeout = 200)
{
	static const char *const needed[] = { ",+sys_ptrace", ",+dac_override", ",+sys_admin" };
	const struct victim_plan plan = { .argv = { "setpriv", "--reuid=65534", "--regid=65534",
						    "--clear-groups", "@filtered", "wx" } };
	const char *words[4];
	char fewer[200];
	struct victim v;
	struct run r;
	size_t n = 0;

	if (geteuid() != 0)
		cr_skip_test("capabilities are root's to give away");
	shell_begin();
	shell_need("setpriv", "util-linux");
	victim_start(&v, &plan);
	shell_words("$ASK capabilities scripts/systemd/heapmedic-guard@.service", words, &n, 4);
	cr_assert_eq(n, 1);
	cr_expect_eq(guard_with(words[0], v.pid, &r), 0, "%s%s", r.out, r.err);
	cr_expect_not_null(strstr(r.out, "1 actions, 0 of them failed"), "%s", r.out);
	run_free(&r);
	/* with the usual two it says what is missing */
	cr_expect_eq(guard_with("-all,+sys_ptrace,+dac_read_search", v.pid, &r), 4);
	cr_expect_not_null(strstr(r.err, "without CAP_DAC_OVERRIDE"), "%s", r.err);
	run_free(&r);
	cr_expect_eq(guard_with("-all,+sys_ptrace", v.pid, &r), 4);
	cr_expect_not_null(strstr(r.err, "without CAP_DAC_OVERRIDE"), "%s", r.err);
	run_free(&r);
	/* none is there in vain */
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		without(fewer, sizeof(fewer), words[0], needed[i]);
		cr_expect_eq(guard_with(fewer, v.pid, &r), 4, "%s: %s%s", fewer, r.out, r.err);
		run_free(&r);
	}
	victim_stop(&v);
	shell_end();
}

/* All system calls of a run are in the unit's list. */
Test(systemd, the_filters_let_everything_through)
{
	char pid[16];
	struct victim v;

	if (getenv("SAN"))
		cr_skip_test("a program with sanitizers makes calls of its own");
	shell_begin();
	shell_need("strace", "strace");
	shell_need("systemd-analyze", "systemd");
	victim_start_named(&v, "retained", "1", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	setenv("P", pid, 1);
	shell_ok("strace -f -o \"$D/metrics\" \"$HEAPMEDIC\" --passive -p $P metrics --output "
		 "\"$D/x.prom\"");
	shell_ok("$ASK calls scripts/systemd/heapmedic-metrics@.service \"$D/metrics\"");
	shell_ok("strace -f -o \"$D/guard\" \"$HEAPMEDIC\" -p $P guard --when 'rss > 1' --do trim "
		 "--max 1");
	shell_ok("$ASK calls scripts/systemd/heapmedic-guard-strict.conf \"$D/guard\"");
	shell_ok("sed 's/ @debug//' scripts/systemd/heapmedic-guard-strict.conf >\"$D/less.conf\"");
	shell_fails("$ASK calls \"$D/less.conf\" \"$D/guard\"", "ptrace");
	victim_stop(&v);
	shell_end();
}
