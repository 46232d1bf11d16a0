// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../inject/status.h"
#include "../../inject/target.h"
#include "../../repl/options.h"
#include "child.h"

#define MAX_WORDS 16

struct parsed {
	struct options o;
	struct diag d;
	int err;
	char text[256];
	char *argv[MAX_WORDS + 1];
};

/* Splits at blanks: these tests need no quotes. */
static void parse(struct parsed *p, const char *line)
{
	int argc = 0;
	char *save = NULL;

	memset(p, 0, sizeof(*p));
	snprintf(p->text, sizeof(p->text), "heapmedic %s", line);
	for (char *w = strtok_r(p->text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		p->argv[argc++] = w;
	p->err = options_parse(argc, p->argv, &p->o, &p->d);
}

static void done(struct parsed *p)
{
	options_free(&p->o);
}

static void expect_words(const struct parsed *p, const char *want)
{
	char got[256] = "";

	cr_assert_eq(p->err, 0, "%s", p->d.text);
	for (int i = 0; i < p->o.words; i++) {
		strcat(got, i ? " " : "");
		strcat(got, p->o.word[i]);
	}
	cr_expect_str_eq(got, want);
}

static void expect_usage(const char *line, const char *text, const char *hint)
{
	struct parsed p;

	parse(&p, line);
	cr_assert_eq(p.err, -EINVAL, "'%s' gives %d", line, p.err);
	cr_expect_eq(p.d.exit, HM_USAGE);
	cr_expect_not_null(strstr(p.d.text, text), "'%s': %s", line, p.d.text);
	cr_expect_not_null(strstr(p.d.hint, hint), "'%s': %s", line, p.d.hint);
	done(&p);
}

Test(options, one_command)
{
	struct parsed p;

	parse(&p, "-p 4711 trim 64M");
	expect_words(&p, "trim 64M");
	cr_assert_eq(p.o.targets, 1u);
	cr_expect_eq(p.o.target[0].kind, SELECT_PID);
	cr_expect_str_eq(p.o.target[0].text, "4711");
	done(&p);
}

Test(options, first_word_that_is_a_number_is_a_target)
{
	struct parsed p;

	parse(&p, "4711 trim 5");
	expect_words(&p, "trim 5");
	cr_assert_eq(p.o.targets, 1u);
	cr_expect_str_eq(p.o.target[0].text, "4711");
	done(&p);
	parse(&p, "--json 4711");
	expect_words(&p, "");
	cr_expect_eq(p.o.targets, 1u);
	done(&p);
}

Test(options, targets_of_each_kind_in_order)
{
	struct parsed p;

	parse(&p, "-p 1 -n redis --cgroup=/a/b --pid 2 -p3 check");
	expect_words(&p, "check");
	cr_assert_eq(p.o.targets, 5u);
	cr_expect_eq(p.o.target[1].kind, SELECT_NAME);
	cr_expect_str_eq(p.o.target[1].text, "redis");
	cr_expect_eq(p.o.target[2].kind, SELECT_CGROUP);
	cr_expect_str_eq(p.o.target[2].text, "/a/b");
	cr_expect_str_eq(p.o.target[4].text, "3");
	done(&p);
}

Test(options, anywhere)
{
	struct parsed p;

	parse(&p, "--json trim --min-yield 5M -b --timeout 3s -p 7 --via=direct");
	expect_words(&p, "trim --min-yield 5M");
	cr_expect(p.o.set.json);
	cr_expect(p.o.set.bytes);
	cr_expect_eq(p.o.set.timeout_ns, UINT64_C(3000000000));
	cr_expect_eq(p.o.set.deadline_ns, UINT64_C(2000000000));
	cr_expect_eq(p.o.set.via, VIA_DIRECT);
	done(&p);
}

Test(options, clusters_and_counts)
{
	struct parsed p;

	parse(&p, "-byvvq -p7");
	cr_assert_eq(p.err, 0);
	cr_expect(p.o.set.bytes && p.o.set.yes && p.o.set.quiet);
	cr_expect_eq(p.o.set.verbose, 2);
	done(&p);
}

Test(options, expressions_and_file)
{
	struct parsed p;

	parse(&p, "-p 7 -e check -e trim");
	cr_assert_eq(p.err, 0);
	cr_assert_eq(p.o.exprs, 2u);
	cr_expect_str_eq(p.o.expr[1], "trim");
	done(&p);
	parse(&p, "7 -f run.hm 100M --json -- --raw -p");
	expect_words(&p, "100M --raw -p");
	cr_expect_str_eq(p.o.file, "run.hm");
	cr_expect(p.o.set.json);
	cr_expect_eq(p.o.targets, 1u);
	done(&p);
	parse(&p, "-f run.hm 12");
	expect_words(&p, "12");
	cr_expect_eq(p.o.targets, 0u);
	done(&p);
}

Test(options, end_of_options_and_negative_numbers)
{
	struct parsed p;

	parse(&p, "7 mallopt M_TRIM_THRESHOLD -1");
	expect_words(&p, "mallopt M_TRIM_THRESHOLD -1");
	done(&p);
	parse(&p, "7 echo -- --json");
	expect_words(&p, "echo -- --json");
	cr_expect_not(p.o.set.json);
	done(&p);
	parse(&p, "-p 7 -- trim");
	expect_words(&p, "trim");
	done(&p);
	parse(&p, "-f - x");
	cr_expect_str_eq(p.o.file, "-");
	done(&p);
}

Test(options, own_options_only_behind_their_command)
{
	struct parsed p;

	parse(&p, "info --file a.xml --raw");
	expect_words(&p, "info --file a.xml --raw");
	done(&p);
	parse(&p, "info --file=a.xml");
	expect_words(&p, "info --file=a.xml");
	done(&p);
	expect_usage("--raw info", "unknown option '--raw'", "heapmedic -h");
	expect_usage("7 trim --raw", "unknown option '--raw'", "");
	expect_usage("7 trim --min-yeild 5M", "--min-yeild", "--min-yield");
}

Test(options, errors)
{
	expect_usage("--jsno", "unknown option '--jsno'", "did you mean --json?");
	expect_usage("--red-only 7 trim", "--red-only", "--read-only");
	expect_usage("-z", "unknown option '-z'", "heapmedic -h");
	expect_usage("-p", "-p needs PID", "");
	expect_usage("--timeout", "--timeout needs TIME", "");
	expect_usage("--timeout never 7", "not a time", "2s");
	expect_usage("--deadline 0 7", "no value for deadline", "");
	expect_usage("--json=yes", "takes no value", "");
	expect_usage("--color blue", "'blue'", "auto, always or never");
	expect_usage("--via magic", "'magic'", "proxy");
	expect_usage("--thread 0 7 trim", "'0'", "threads");
	expect_usage("-e trim -f x", "-e and -f", "source");
	expect_usage("7 -e trim check", "-e and a command", "-e");
	expect_usage("-f a -f b", "twice", "source");
}

Test(options, a_snapshot_in_place_of_a_process)
{
	struct parsed p;

	parse(&p, "--load a.hms diagnose --json");
	expect_words(&p, "diagnose");
	cr_expect_str_eq(p.o.load, "a.hms");
	cr_expect(p.o.set.json);
	done(&p);
	parse(&p, "maps --all --load=b.hms");
	expect_words(&p, "maps --all");
	cr_expect_str_eq(p.o.load, "b.hms");
	done(&p);
	expect_usage("--load a.hms -p 1 maps", "do not go together", "diff");
	expect_usage("maps -n x --load a.hms", "do not go together", "diff");
	expect_usage("-g / --load a.hms maps", "do not go together", "diff");
	expect_usage("--load a.hms 4711 maps", "do not go together", "diff");
	expect_usage("--load a.hms --load b.hms maps", "given twice", "diff");
	expect_usage("maps --load", "needs SNAPSHOT", "-h");
}

Test(options, what_was_understood_before_an_error_counts)
{
	struct parsed p;

	parse(&p, "--json --nonsense");
	cr_expect_eq(p.err, -EINVAL);
	cr_expect(p.o.set.json);
	done(&p);
}

Test(options, json_behind_an_error_counts_too)
{
	struct parsed p;

	parse(&p, "--nonsense trim --json");
	cr_expect_eq(p.err, -EINVAL);
	cr_expect(p.o.set.json);
	done(&p);
	parse(&p, "--nonsense -- --json");
	cr_expect_eq(p.err, -EINVAL);
	cr_expect_not(p.o.set.json);
	done(&p);
}

Test(options, garbage)
{
	static const char *const words[] = {
		"-p", "7",    "--",	"-",	"--=",	 "--json=", "trim",   "-e",
		"-f", "info", "--file", "-pp",	"-b7",	 "--raw",   "--raw=", "-1",
		"",   "---",  "-h",	"help", "--via", "proxy",   "-vvvV",  "--min-yield"
	};
	char program[] = "heapmedic";
	unsigned seed = 5;

	for (int round = 0; round < 20000; round++) {
		char *argv[MAX_WORDS + 1] = { program };
		int argc = 1 + rand_r(&seed) % (MAX_WORDS - 1);
		struct options o;
		struct diag d;
		int err;

		for (int i = 1; i < argc; i++)
			argv[i] = (char *)
				words[rand_r(&seed) % (int)(sizeof(words) / sizeof(words[0]))];
		err = options_parse(argc, argv, &o, &d);
		cr_assert(err == 0 || (err == -EINVAL && d.exit == HM_USAGE));
		cr_assert_leq(o.words + (int)o.targets + (int)o.exprs, argc);
		options_free(&o);
	}
}

/* ---- the settings behind the options */

Test(settings, one_way_settings_stay)
{
	static const char *const names[] = { "passive", "read-only", "dry-run" };

	for (size_t i = 0; i < 3; i++) {
		const struct option_row *row = option_by_name(names[i], strlen(names[i]), OPT_SET);
		struct settings s;
		struct diag d;
		char text[64];

		cr_assert_not_null(row);
		settings_default(&s);
		cr_assert_eq(settings_apply(&s, row, "on", &d), 0);
		cr_expect_eq(settings_apply(&s, row, "off", &d), -EPERM);
		cr_expect_eq(d.exit, HM_NOT_PERMITTED);
		settings_format(&s, row, text, sizeof(text));
		cr_expect_str_eq(text, "on");
	}
}

Test(settings, values)
{
	const struct option_row *timeout = option_by_name("timeout", 7, OPT_SET);
	const struct option_row *confirm = option_by_name("confirm", 7, OPT_SET);
	struct settings s;
	struct diag d;
	char text[64];

	settings_default(&s);
	cr_assert_not_null(timeout);
	cr_assert_not_null(confirm);
	cr_expect(s.confirm);
	cr_assert_eq(settings_apply(&s, confirm, "off", &d), 0);
	cr_expect_not(s.confirm);
	cr_expect_eq(settings_apply(&s, confirm, "maybe", &d), -EINVAL);
	cr_expect_eq(d.exit, HM_USAGE);
	cr_assert_eq(settings_apply(&s, timeout, "500ms", &d), 0);
	cr_expect_eq(s.timeout_ns, UINT64_C(500000000));
	settings_format(&s, timeout, text, sizeof(text));
	cr_expect_str_eq(text, "500 ms");
	cr_expect_null(option_by_name("confirm", 7, OPT_ARGV));
	cr_expect_null(option_by_name("audit", 5, OPT_LINE | OPT_SET));
}

Test(settings, pids)
{
	static const char *const bad[] = { "",	 "0",  "-1",	      "+1", " 1",
					   "1 ", "1x", "99999999999", "0x1" };
	pid_t pid = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(pid_parse(bad[i], &pid), "'%s'", bad[i]);
	cr_assert(pid_parse("4194304", &pid));
	cr_expect_eq(pid, 4194304);
}

/* ---- targets by control group */

Test(targets, group_and_below)
{
	static const char text[] =
		"12:memory:/kube/pod1\n1:name=systemd:/sys/a:b\n0::/kube/pod1/c\n";

	cr_expect(cgroup_matches(text, "/kube/pod1"));
	cr_expect(cgroup_matches(text, "/kube"));
	cr_expect(cgroup_matches(text, "/kube/pod1/c"));
	cr_expect(cgroup_matches(text, "/sys/a:b"));
	cr_expect(cgroup_matches(text, "/"));
	cr_expect_not(cgroup_matches(text, "/kube/pod"));
	cr_expect_not(cgroup_matches(text, "/kube/pod1/c/d"));
	cr_expect_not(cgroup_matches(text, "/pod1"));
	cr_expect_not(cgroup_matches("", "/"));
	cr_expect_not(cgroup_matches("garbage\n\n::", "/a"));
}

static bool chosen(const pid_t *pid, size_t n, pid_t one)
{
	for (size_t i = 0; i < n; i++)
		if (pid[i] == one)
			return true;
	return false;
}

/* All are below the root group; what has no memory is not meant. */
Test(targets, group_without_zombies_and_kernel_threads)
{
	const struct selector all = { .kind = SELECT_CGROUP, .text = "/" };
	pid_t alive = child_start(child_sleep, NULL), dead = child_start(child_sleep, NULL);
	pid_t *pid = NULL;
	size_t n = 0;
	struct diag d;

	cr_assert_eq(kill(dead, SIGKILL), 0);
	cr_assert(child_reach(dead, dead, 'Z'));
	cr_assert_eq(targets_resolve(&all, 1, &pid, &n, &d), 0, "%s", d.text);
	cr_expect(chosen(pid, n, alive));
	cr_expect_not(chosen(pid, n, dead));
	for (size_t i = 0; i < n; i++) {
		char path[32], *text;
		size_t len;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid[i]);
		if (proc_read(AT_FDCWD, path, 16384, &text, &len))
			continue;
		cr_expect_not(stat_is_kthread(text), "%d", (int)pid[i]);
		free(text);
	}
	free(pid);
	child_end(alive);
	child_end(dead);
}

Test(targets, group_names)
{
	static const char mounts[] =
		"22 1 0:20 / /proc rw - proc proc rw\n"
		"30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
		"31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
	char buf[64];

	cr_assert_eq(cgroup_normalise(mounts, "/a/b", buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "/a/b");
	cr_assert_eq(cgroup_normalise(mounts, "a/b///", buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "/a/b");
	cr_assert_eq(cgroup_normalise(mounts, "/sys/fs/cgroup/x.slice", buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "/x.slice");
	cr_assert_eq(cgroup_normalise(mounts, "/sys/fs/cgroup/memory/x", buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "/x");
	cr_assert_eq(cgroup_normalise(mounts, "/sys/fs/cgroup", buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "/");
	cr_expect_eq(cgroup_normalise(mounts, "", buf, sizeof(buf)), -EINVAL);
	cr_expect_eq(cgroup_normalise(mounts, "/0123456789", buf, 8), -ENAMETOOLONG);
}

/* What looks at the rest of the text for each line does not come to an end here. */
Test(targets, group_of_a_long_mountinfo, .timeout = 120)
{
	static const char line[] = "22 1 0:20 / /m rw,relatime - proc proc rw\n";
	static const char last[] = "30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n";
	size_t n = ((size_t)16 << 20) / (sizeof(line) - 1);
	char *text = malloc(n * (sizeof(line) - 1) + sizeof(last)), *end = text, buf[64];

	cr_assert_not_null(text);
	for (size_t i = 0; i < n; i++)
		end = mempcpy(end, line, sizeof(line) - 1);
	memcpy(end, last, sizeof(last));
	cr_assert_eq(cgroup_normalise(text, "/cg/a", buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "/a");
	cr_expect_not(cgroup_matches(text, "/a"));
	free(text);
}
