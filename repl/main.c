// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "command.h"
#include "commands.h"
#include "context.h"
#include "help.h"
#include "line.h"
#include "metrics.h"
#include "options.h"
#include "script.h"
#include "signals.h"
#include "tally.h"
#include "written.h"
#include "../agent/snapshot.h"
#include "../inject/target.h"
#include "../inject/usage.h"

/* What is the same for every target. */
struct job {
	struct options o;
	struct sink sink;
	struct audit *audit;
	char *text; /* stdin, read whole where several targets run it */
	size_t len;
	size_t targets;
	struct snapshot loaded; /* valid with --load */
	struct metrics metrics; /* of several targets: written when all have been looked at */
	struct written written;
};

static void context_init(struct context *c, struct job *j, pid_t pid)
{
	memset(c, 0, sizeof(*c));
	c->base = c->set = j->o.set;
	c->sink = &j->sink;
	c->audit = j->audit;
	c->pid = pid;
	c->vars.pid = pid;
}

/* What is looked at in place of a process, and of when it is. */
static void context_load(struct context *c, const struct snapshot *s)
{
	char time[64] = "";
	struct tm tm;

	c->loaded = s;
	c->pid = s->pid;
	c->vars.pid = s->pid;
	snprintf(c->comm, sizeof(c->comm), "%s", s->comm);
	if (gmtime_r(&s->time.tv_sec, &tm))
		strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &tm);
	context_note(c, "a snapshot of %s (pid %d) of %s%s%s, not the process as it is now",
		     s->comm, (int)s->pid, time, *s->host ? " on " : "", s->host);
}

/* An error of the run, not of one target. */
static enum hm_exit fail(struct job *j, const struct diag *d)
{
	struct context c;

	context_init(&c, j, 0);
	context_error(&c, d);
	return d->exit;
}

/* Commands come from stdin, and nothing says which one to run. */
static bool reads_stdin(const struct options *o)
{
	return o->file ? strcmp(o->file, "-") == 0 : !o->words && !o->exprs;
}

static bool is_shell(const struct options *o)
{
	return reads_stdin(o) && !o->file && isatty(STDIN_FILENO);
}

static enum hm_exit work(struct context *c, struct job *j)
{
	const struct options *o = &j->o;

	if (j->text) {
		c->vars.argc = o->file ? o->words : 0;
		c->vars.argv = o->word;
		return script_text(c, "<stdin>", 1, j->text, j->len);
	}
	if (o->exprs)
		return script_exprs(c, o->expr, o->exprs);
	if (o->file)
		return script_file(c, o->file, o->words, o->word);
	if (o->words) {
		c->oneshot = true;
		return command_run(c, o->words, o->word);
	}
	if (is_shell(o))
		return line_shell(c);
	return script_stream(c, "<stdin>", stdin);
}

/* Is nothing printed but metrics? A program reads that, and it says itself whose they are. */
static bool only_metrics(const struct options *o)
{
	size_t same = 0;

	for (size_t i = 0; i < o->exprs; i++)
		same += strcmp(o->expr[i], "metrics") == 0;
	if (o->exprs)
		return same == o->exprs;
	if (!o->words || o->file)
		return false;
	return strcmp(o->word[0], "metrics") == 0 ||
	       (o->words > 2 && strcmp(o->word[o->words - 2], "then") == 0 &&
		strcmp(o->word[o->words - 1], "metrics") == 0);
}

/* One of several: what is known of it before anything is done. */
struct turn {
	struct target t; /* valid where open */
	bool open;
};

static void turn_begin(struct turn *turn, struct tally_row *row, pid_t pid)
{
	struct usage u;
	struct diag d;

	*row = (struct tally_row){ .pid = pid, .comm = "?" };
	turn->open = target_open(pid, &turn->t, &d) == 0;
	if (!turn->open)
		return;
	snprintf(row->comm, sizeof(row->comm), "%s", turn->t.comm);
	if (usage_read(&turn->t, &u, &d) == 0)
		row->before = u.rss;
}

/* When nothing of ours is in it any more. */
static void turn_end(struct turn *turn, struct tally_row *row)
{
	struct usage u;
	struct diag d;

	if (!turn->open)
		return;
	if (usage_read(&turn->t, &u, &d) == 0)
		row->after = u.rss;
	target_close(&turn->t);
}

/* Says whose answers follow, where there are several; JSON says it itself. */
static void print_heading(const struct job *j, const struct tally_row *row)
{
	if (j->targets < 2 || j->o.set.json || only_metrics(&j->o))
		return;
	fprintf(j->sink.out, "%s== %s:%d%s\n", sink_paint(&j->sink, PAINT_HEAD), row->comm,
		(int)row->pid, sink_plain(&j->sink));
}

/* Its processes come and go while it runs: nobody is looked up before. */
static bool selects(const struct options *o)
{
	const struct command *row = o->words && !o->file ? command_find(o->word[0]) : NULL;

	return row && (row->flags & CMD_SELECTS);
}

static enum hm_exit work_on(struct job *j, pid_t pid, struct tally_row *row)
{
	struct context c;
	enum hm_exit code, end;

	context_init(&c, j, pid);
	c.targets = j->targets;
	c.metrics = j->targets > 1 ? &j->metrics : NULL;
	c.written = &j->written;
	if (selects(&j->o)) {
		c.selector = j->o.target;
		c.selectors = j->o.targets;
	}
	if (j->o.targets == 1 && j->o.target[0].kind == SELECT_NAME)
		c.name = j->o.target[0].text;
	print_heading(j, row);
	if (j->o.load)
		context_load(&c, &j->loaded);
	code = work(&c, j);
	end = context_end(&c);
	row->reached = true;
	row->exit = end > code ? end : code;
	snprintf(row->code, sizeof(row->code), "%s", c.worst_code);
	return row->exit;
}

static void print_tally(struct job *j, const struct tally_row *row, size_t n)
{
	if (n < 2 || j->o.set.json || j->o.set.quiet || only_metrics(&j->o))
		return;
	if (tally_print(row, n, j->o.set.bytes, &j->sink))
		fputs("heapmedic: no memory left for the table\n", j->sink.err);
}

/* One after another, so that two members of a cluster are never touched at once. */
static enum hm_exit work_on_all(struct job *j, const pid_t *pid, size_t n)
{
	struct tally_row none = { 0 }, *row = calloc(n ? n : 1, sizeof(*row));
	enum hm_exit worst = HM_OK;
	struct diag d;

	if (!row || n == 0 || !pid) {
		free(row);
		diag_internal(&d, -ENOMEM, "processes");
		return n ? fail(j, &d) : work_on(j, 0, &none);
	}
	for (size_t i = 0; i < n; i++) {
		struct turn turn = { .open = false };
		enum hm_exit code = HM_OK;

		if (n > 1)
			turn_begin(&turn, &row[i], pid[i]);
		if (!i || (!*signals_cancel() && !j->sink.write_error))
			code = work_on(j, pid[i], &row[i]);
		turn_end(&turn, &row[i]);
		if (code > worst)
			worst = code;
	}
	diag_clear(&d);
	if (!j->metrics.output)
		metrics_write(&j->metrics, j->sink.out);
	else if (metrics_save(&j->metrics, j->o.set.dry_run, &d) && fail(j, &d) > worst)
		worst = d.exit;
	print_tally(j, row, n);
	free(row);
	return worst;
}

static int check_targets(struct job *j, struct diag *d)
{
	/* once, and not once for each */
	if (j->o.words && !j->o.file && strcmp(j->o.word[0], "guard") == 0)
		return guard_one_target(j->targets, d);
	if (!reads_stdin(&j->o))
		return 0;
	if (is_shell(&j->o) && j->targets == 0 && !j->o.load)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "heapmedic -h shows how",
				 "no process and no command is given");
	if (is_shell(&j->o) && j->targets > 1)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage",
				 "give a command, or one process for the shell",
				 "the shell works on one process, %zu are given", j->targets);
	if (j->targets > 1)
		return script_read("-", &j->text, &j->len, d);
	return 0;
}

static enum hm_exit run(struct job *j)
{
	pid_t *pid = NULL;
	enum hm_exit code;
	struct diag d;

	diag_clear(&d);
	if (signals_setup(&d) ||
	    (!selects(&j->o) &&
	     targets_resolve(j->o.target, j->o.targets, &pid, &j->targets, &d)) ||
	    check_targets(j, &d) || (j->o.load && snapshot_load(j->o.load, &j->loaded, &d)) ||
	    (j->o.audit && audit_open(j->o.audit, &j->audit, &d)))
		code = fail(j, &d);
	else
		code = work_on_all(j, pid, j->targets);
	free(pid);
	free(j->text);
	metrics_free(&j->metrics);
	snapshot_free(&j->loaded);
	audit_close(j->audit);
	return code;
}

static enum hm_exit print_help(struct job *j)
{
	const struct command *row = j->o.words ? command_find(j->o.word[0]) : NULL;

	if (row)
		help_command(j->sink.out, row, false);
	else
		help_program(j->sink.out);
	return HM_OK;
}

/* Whoever runs it with another's rights could read and change another's processes. */
static int check_setuid(struct diag *d)
{
	if (getuid() == geteuid() && getgid() == getegid())
		return 0;
	return diag_fail(d, -EPERM, HM_NOT_PERMITTED, "set-user-id",
			 "remove the set-user-ID and set-group-ID bits and use sudo",
			 "heapmedic does not run set-user-ID (real uid %d, effective %d)",
			 (int)getuid(), (int)geteuid());
}

/*
 * Each library of the target costs a descriptor. The soft limit is low for the sake of select(2)
 * alone, which nobody here calls.
 */
static void raise_open_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= r.rlim_max)
		return;
	r.rlim_cur = r.rlim_max;
	/* what is left of the limit may do as well; what does not says so itself */
	(void)!setrlimit(RLIMIT_NOFILE, &r);
}

static enum hm_exit start(struct job *j, int argc, char **argv)
{
	struct diag d;
	int err;

	diag_clear(&d);
	raise_open_files();
	err = options_parse(argc, argv, &j->o, &d);
	sink_init(&j->sink, stdout, stderr, j->o.set.color);
	if (err || check_setuid(&d))
		return fail(j, &d);
	if (j->o.version) {
		fputs("heapmedic " HM_VERSION "\n", stdout);
		return HM_OK;
	}
	return j->o.set.help ? print_help(j) : run(j);
}

int main(int argc, char **argv)
{
	struct job j;
	enum hm_exit code;
	int err;

	memset(&j, 0, sizeof(j));
	code = start(&j, argc, argv);
	err = sink_flush(&j.sink);
	if (err && err != -EPIPE && code == HM_OK) {
		fprintf(stderr, "heapmedic: cannot write the output: %s\n", strerror(-err));
		code = HM_INTERNAL;
	}
	options_free(&j.o);
	return (int)code;
}
