// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../repl/command.h"
#include "../../repl/script.h"

/* A context without a target, whose output and talk are kept apart. */
struct stage {
	struct context c;
	struct sink s;
	char *out, *err;
	size_t out_len, err_len;
};

static void stage_begin(struct stage *t)
{
	FILE *out, *err;

	memset(t, 0, sizeof(*t));
	out = open_memstream(&t->out, &t->out_len);
	err = open_memstream(&t->err, &t->err_len);
	cr_assert(out && err);
	sink_init(&t->s, out, err, COLOR_NEVER);
	settings_default(&t->c.base);
	t->c.set = t->c.base;
	t->c.sink = &t->s;
}

static void stage_end(struct stage *t)
{
	cr_assert_eq(context_end(&t->c), HM_OK);
	cr_assert_eq(fclose(t->s.out), 0);
	cr_assert_eq(fclose(t->s.err), 0);
}

static void stage_free(struct stage *t)
{
	free(t->out);
	free(t->err);
}

static void expect(const char *text, enum hm_exit code, const char *out, const char *err)
{
	struct stage t;
	enum hm_exit got;

	stage_begin(&t);
	got = script_text(&t.c, "run.hm", 1, text, strlen(text));
	stage_end(&t);
	cr_expect_eq(got, code, "'%s' gives %d: %s", text, got, t.err);
	cr_expect_str_eq(t.out, out);
	if (err)
		cr_expect_eq(strncmp(t.err, err, strlen(err)), 0, "'%s' says: %s", text, t.err);
	else
		cr_expect_str_eq(t.err, "");
	stage_free(&t);
}

Test(script, runs_in_order)
{
	expect("echo a\necho 'b  c'; echo\n", HM_OK, "a\nb  c\n\n", NULL);
	expect("echo a\nquit\necho b\n", HM_OK, "a\n", NULL);
	expect("# only a comment\n", HM_OK, "", NULL);
}

/* A typing error in the last line must not leave half a runbook done. */
Test(script, is_checked_before_its_first_command)
{
	expect("echo a\nfrobnicate\n", HM_USAGE, "",
	       "run.hm:2: no command is named 'frobnicate'; next: ");
	expect("echo a\n\necho 'b\n", HM_USAGE, "", "run.hm:3: unclosed single quote; next: ");
	expect("echo a\nsleep\n", HM_USAGE, "", "run.hm:2: sleep: too few arguments");
	expect("echo a\ntrim --nope\n", HM_USAGE, "", "run.hm:2: trim has no option '--nope'");
	expect("echo a \\\n", HM_USAGE, "", "run.hm:");
	expect("echo $1\n", HM_USAGE, "", "run.hm:1: $1 is not given");
	expect("echo a\nset nope on\n", HM_USAGE, "",
	       "run.hm:2: no setting is named 'nope'; next: ");
	expect("echo a\nset via bus\n", HM_USAGE, "",
	       "run.hm:2: 'bus' is no value for via; next: ");
	expect("echo a\nsleep long\n", HM_USAGE, "", "run.hm:2: sleep: 'long' is not a time");
	expect("echo a\ntrim much\n", HM_USAGE, "", "run.hm:2: PAD: 'much' is not a size");
	expect("echo a\ntrim --min-yield x\n", HM_USAGE, "", "run.hm:2: --min-yield: 'x'");
	expect("echo a\nmallopt M_NOPE 1\n", HM_USAGE, "", "run.hm:2: mallopt has no parameter");
	expect("echo a\nmallopt M_MMAP_MAX x\n", HM_USAGE, "", "run.hm:2: M_MMAP_MAX: 'x'");
	expect("echo a\nbt main\n", HM_USAGE, "", "run.hm:2: 'main' is no thread id");
	expect("echo a\nmallctl\n", HM_USAGE, "", "run.hm:2: mallctl needs a name");
	expect("echo a\nmallctl background_thread 7\n", HM_USAGE, "", "run.hm:2: ");
}

Test(script, stops_at_the_first_error)
{
	expect("echo a\ninfo --file /no/such\necho b\n", HM_USAGE, "a\n",
	       "run.hm:2: cannot read /no/such: ");
	expect("echo a\n\ncheck\necho b\n", HM_USAGE, "a\n",
	       "run.hm:3: this command needs a process; next: ");
	expect("info --file /no/such/file\necho b\n", HM_USAGE, "",
	       "run.hm:1: cannot read /no/such/file: ");
}

Test(script, one_way_settings_cannot_be_undone)
{
	expect("set passive on\nset passive off\necho b\n", HM_NOT_PERMITTED, "",
	       "run.hm:2: passive cannot be turned off");
	expect("set read-only on\nset read-only off\n", HM_NOT_PERMITTED, "", "run.hm:2:");
	expect("set dry-run on\nset dry-run off\n", HM_NOT_PERMITTED, "", "run.hm:2:");
	expect("set json on\nset json off\necho x\n", HM_OK, "x\n", NULL);
}

/* Refused before a process is even looked for. */
Test(script, passive_and_read_only_refuse)
{
	expect("set passive on\ntrim\n", HM_NOT_PERMITTED, "",
	       "run.hm:2: trim changes the target, which --passive refuses");
	expect("set passive on\nstats\n", HM_NOT_PERMITTED, "", "run.hm:2: stats calls into");
	expect("set passive on\nbt\n", HM_NOT_PERMITTED, "", "run.hm:2: bt holds a thread");
	expect("set read-only on\ntrim\n", HM_NOT_PERMITTED, "", "run.hm:2: trim changes");
	expect("trim --read-only\n", HM_NOT_PERMITTED, "", "run.hm:1: trim changes");
	expect("set read-only on\nmallctl arena.0.purge\n", HM_NOT_PERMITTED, "", "run.hm:2:");
	/* A reading one gets past the check, to the missing target. */
	expect("set read-only on\nmallctl stats.allocated\n", HM_USAGE, "",
	       "run.hm:2: this command needs a process");
	/* And so does a dry run. */
	expect("set read-only on\nset passive on\ntrim --dry-run\n", HM_USAGE, "",
	       "run.hm:3: this command needs a process");
}

Test(script, exprs_count_their_lines)
{
	char one[] = "echo a", two[] = "echo b; info --file /no", three[] = "echo c";
	char *const expr[] = { one, two, three };
	struct stage t;

	stage_begin(&t);
	cr_expect_eq(script_exprs(&t.c, expr, 3), HM_USAGE);
	stage_end(&t);
	cr_expect_str_eq(t.out, "a\nb\n");
	cr_expect_eq(strncmp(t.err, "-e:2: cannot read", 17), 0, "%s", t.err);
	stage_free(&t);
}

Test(script, exprs_are_checked_together)
{
	char one[] = "echo a", two[] = "frobnicate";
	char *const expr[] = { one, two };
	struct stage t;

	stage_begin(&t);
	cr_expect_eq(script_exprs(&t.c, expr, 2), HM_USAGE);
	stage_end(&t);
	cr_expect_str_eq(t.out, "");
	cr_expect_eq(strncmp(t.err, "-e:2: no command", 16), 0, "%s", t.err);
	stage_free(&t);
}

static void stream(struct stage *t, const char *text, enum hm_exit code)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");

	cr_assert_not_null(in);
	stage_begin(t);
	cr_expect_eq(script_stream(&t->c, "<stdin>", in), code);
	stage_end(t);
	fclose(in);
}

/* Commands on a pipe are answered as they come: what stands before an error was run. */
Test(script, stream_runs_line_by_line)
{
	struct stage t;

	stream(&t, "echo a\necho \\\n b\nfrobnicate\necho c\n", HM_USAGE);
	cr_expect_str_eq(t.out, "a\nb\n");
	cr_expect_eq(strncmp(t.err, "<stdin>:4: no command", 21), 0, "%s", t.err);
	stage_free(&t);
	stream(&t, "echo a\necho b", HM_OK);
	cr_expect_str_eq(t.out, "a\nb\n");
	stage_free(&t);
	stream(&t, "echo a\necho b \\", HM_USAGE);
	cr_expect_str_eq(t.out, "a\n");
	cr_expect_eq(strncmp(t.err, "<stdin>:2: nothing follows", 26), 0, "%s", t.err);
	stage_free(&t);
}

/* A directory opens for reading, and fails only then. */
Test(script, stream_that_cannot_be_read_is_no_empty_one)
{
	FILE *in = fopen("/", "r");
	struct stage t;

	cr_assert_not_null(in);
	stage_begin(&t);
	cr_expect_eq(script_stream(&t.c, "<stdin>", in), HM_USAGE);
	stage_end(&t);
	cr_expect_eq(strncmp(t.err, "<stdin>:1: cannot read", 22), 0, "%s", t.err);
	stage_free(&t);
	fclose(in);
}

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(script, file_takes_arguments)
{
	char path[] = "/tmp/hm-test-XXXXXX";
	char one[] = "x y", two[] = "z", *args[] = { one, two, NULL };
	struct stage t;

	write_file(path, "echo $2 \"<$1>\"\necho $@\n");
	stage_begin(&t);
	cr_expect_eq(script_file(&t.c, path, 2, args), HM_OK);
	stage_end(&t);
	cr_expect_str_eq(t.out, "z <x y>\nx y z\n");
	stage_free(&t);
	unlink(path);
}

Test(script, source_fails_with_the_place_inside)
{
	char path[] = "/tmp/hm-test-XXXXXX", text[128], want[128];
	struct stage t;

	write_file(path, "echo in $1\ninfo --file /no\n");
	snprintf(text, sizeof(text), "source %s 7\necho after\n", path);
	stage_begin(&t);
	cr_expect_eq(script_text(&t.c, "outer.hm", 1, text, strlen(text)), HM_USAGE);
	stage_end(&t);
	cr_expect_str_eq(t.out, "in 7\n");
	snprintf(want, sizeof(want), "%s:2: cannot read", path);
	cr_expect_eq(strncmp(t.err, want, strlen(want)), 0, "%s", t.err);
	cr_expect_null(strstr(t.err, "outer.hm"), "told once: %s", t.err);
	stage_free(&t);
	unlink(path);
}

Test(script, options_behind_source_hold_inside_only)
{
	char path[] = "/tmp/hm-test-XXXXXX", text[160];
	struct stage t;

	write_file(path, "trim\n");
	snprintf(text, sizeof(text), "source --passive %s\n", path);
	stage_begin(&t);
	cr_expect_eq(script_text(&t.c, "o", 1, text, strlen(text)), HM_NOT_PERMITTED);
	snprintf(text, sizeof(text), "source %s\n", path);
	cr_expect_eq(script_text(&t.c, "o", 1, text, strlen(text)), HM_USAGE);
	stage_end(&t);
	stage_free(&t);
	unlink(path);
}

Test(script, a_file_that_runs_itself_ends)
{
	char path[] = "/tmp/hm-test-XXXXXX", text[64];
	struct stage t;
	int fd;

	write_file(path, "");
	snprintf(text, sizeof(text), "source %s\n", path);
	fd = open(path, O_WRONLY | O_TRUNC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	stage_begin(&t);
	cr_expect_eq(script_file(&t.c, path, 0, NULL), HM_USAGE);
	stage_end(&t);
	cr_expect_not_null(strstr(t.err, "runbooks run one another"), "%s", t.err);
	stage_free(&t);
	unlink(path);
}

Test(script, json_has_a_line_for_each_error_and_none_for_control)
{
	struct stage t;
	json_t *o;

	stage_begin(&t);
	t.c.base.json = true;
	cr_expect_eq(script_text(&t.c, "r", 1, "echo a\nset bytes on\ntrim\n", 25), HM_USAGE);
	stage_end(&t);
	o = json_loads(t.out, 0, NULL);
	cr_assert_not_null(o, "one object, nothing else: %s", t.out);
	cr_expect_str_eq(json_string_value(json_object_get(o, "command")), "trim");
	cr_expect_eq(json_integer_value(json_object_get(o, "exit")), HM_USAGE);
	cr_expect_str_eq(json_string_value(json_object_get(json_object_get(o, "error"), "code")),
			 "no-target");
	json_decref(o);
	stage_free(&t);
}

Test(script, json_of_a_syntax_error)
{
	struct stage t;
	json_t *o;

	stage_begin(&t);
	t.c.base.json = true;
	cr_expect_eq(script_text(&t.c, "r", 1, "echo 'a\n", 8), HM_USAGE);
	stage_end(&t);
	o = json_loads(t.out, 0, NULL);
	cr_assert_not_null(o, "%s", t.out);
	cr_expect(json_is_null(json_object_get(o, "command")));
	cr_expect_str_eq(json_string_value(json_object_get(json_object_get(o, "error"), "code")),
			 "syntax");
	json_decref(o);
	stage_free(&t);
}

/* ---- the audit trail */

Test(audit, records_are_json_lines_in_a_private_file)
{
	char dir[] = "/tmp/hm-audit-XXXXXX", path[64], text[1024] = "";
	const struct target target = { .pid = 7, .start_time = 99, .comm = "x\"y" };
	char name[] = "mallopt", what[] = "M_MMAP_MAX", value[] = "0";
	char *const words[] = { name, what, value, NULL };
	struct audit_record r = { .t = &target, .argv = words, .phase = "before", .result = "" };
	struct audit *a = NULL;
	struct diag d;
	struct stat st;
	json_t *o;
	FILE *f;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/audit", dir);
	cr_assert_eq(audit_open(path, &a, &d), 0, "%s", d.text);
	cr_assert_eq(audit_write(a, &r, &d), 0);
	r.phase = "after";
	r.result = "ok";
	cr_assert_eq(audit_write(a, &r, &d), 0);
	audit_close(a);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600u);
	f = fopen(path, "r");
	cr_assert_not_null(f);
	cr_assert_not_null(fgets(text, sizeof(text), f));
	o = json_loads(text, 0, NULL);
	cr_assert_not_null(o, "%s", text);
	cr_expect_str_eq(json_string_value(json_object_get(o, "command")), "mallopt M_MMAP_MAX 0");
	cr_expect_str_eq(json_string_value(json_object_get(o, "phase")), "before");
	cr_expect_eq(json_integer_value(json_object_get(o, "start_time")), 99);
	cr_expect_not_null(json_object_get(o, "user"));
	json_decref(o);
	cr_assert_not_null(fgets(text, sizeof(text), f));
	cr_expect_not_null(strstr(text, "\"phase\":\"after\",\"result\":\"ok\""));
	cr_expect_null(fgets(text, sizeof(text), f));
	fclose(f);
	unlink(path);
	rmdir(dir);
}

Test(audit, a_link_or_a_full_disk_is_refused)
{
	char dir[] = "/tmp/hm-audit-XXXXXX", link[64];
	struct audit *a = NULL;
	struct diag d;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/link", dir);
	cr_assert_eq(symlink("/tmp", link), 0);
	cr_expect_lt(audit_open(link, &a, &d), 0);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_expect_str_eq(d.code, "audit-failed");
	cr_expect_lt(audit_open("/dev/full", &a, &d), 0, "not a regular file");
	cr_expect_lt(audit_open("/no/such/dir/audit", &a, &d), 0);
	unlink(link);
	rmdir(dir);
}

Test(audit, none_is_no_error)
{
	struct diag d;

	cr_expect_eq(audit_write(NULL, NULL, &d), 0);
	audit_close(NULL);
}
