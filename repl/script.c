// SPDX-License-Identifier: GPL-3.0-or-later
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "signals.h"

#define MAX_FILE  ((size_t)64 * 1024 * 1024)
#define MAX_DEPTH 16

static enum hm_exit tell(struct context *c, unsigned line, const struct diag *d)
{
	c->origin.line = line;
	context_error(c, d);
	return d->exit;
}

/* Text at its end: a line that goes on is an error there. */
static int parse_whole(struct context *c, const char *text, size_t len, unsigned first_line,
		       struct grammar *g, unsigned *line, struct diag *d)
{
	int err = grammar_parse(text, len, first_line, &c->vars, g, line, d);

	if (err == -EAGAIN)
		diag_fail(d, -EINVAL, HM_USAGE, "syntax", "remove the \\ or add the line",
			  "nothing follows the \\ at the end");
	return err;
}

/* Is it a command, with its number of words and its options? Runs nothing. */
static int check_statement(const struct context *c, const struct statement *st, struct diag *d)
{
	const struct command *row = command_find(st->argv[0]);
	struct settings scratch;
	struct args args;
	int err;

	if (!row)
		return command_unknown(st->argv[0], d);
	settings_default(&scratch);
	err = args_parse(row, st->argc, st->argv, &args, &scratch, d);
	if (err)
		return err;
	err = command_fits(c, row, &args, d);
	args_free(&args);
	return err;
}

static enum hm_exit check_all(struct context *c, const struct grammar *g)
{
	struct diag d;

	diag_clear(&d);
	for (size_t i = 0; i < g->n; i++)
		if (check_statement(c, &g->v[i], &d))
			return tell(c, g->v[i].line, &d);
	return HM_OK;
}

static enum hm_exit interrupted(struct context *c)
{
	struct diag d;

	diag_fail(&d, -ECANCELED, HM_CALL_FAILED, "interrupted",
		  "run them again; what was done before them stays done",
		  "interrupted: this command and those behind it were not run");
	return tell(c, c->origin.line, &d);
}

/* The highest exit code of all; c->stopped: what follows is not to be run. */
static enum hm_exit run_all(struct context *c, const struct grammar *g)
{
	enum hm_exit code = HM_OK;

	c->stopped = c->unmet = false;
	for (size_t i = 0; i < g->n && !c->stopped && !c->quit && !c->sink->write_error; i++) {
		enum hm_exit one;

		c->origin.line = g->v[i].line;
		if (*signals_cancel()) {
			c->stopped = true;
			return interrupted(c);
		}
		if (signals_take_stop())
			signals_stop_self();
		one = command_run(c, g->v[i].argc, g->v[i].argv);
		c->stopped = one != HM_OK && (!c->go_on || c->unmet || *signals_cancel());
		code = one > code ? one : code;
	}
	return code;
}

/* Parses and checks; with run also runs. */
static enum hm_exit whole_text(struct context *c, const char *name, unsigned first_line,
			       const char *text, size_t len, bool run)
{
	struct origin outer = c->origin;
	unsigned line = first_line;
	enum hm_exit code;
	struct grammar g;
	struct diag d;

	diag_clear(&d);
	c->stopped = true;
	c->origin = (struct origin){ .name = name, .line = first_line };
	if (parse_whole(c, text, len, first_line, &g, &line, &d)) {
		code = tell(c, line, &d);
	} else {
		code = check_all(c, &g);
		if (code == HM_OK && run)
			code = run_all(c, &g);
		grammar_free(&g);
	}
	c->origin = outer;
	return code;
}

enum hm_exit script_text(struct context *c, const char *name, unsigned first_line, const char *text,
			 size_t len)
{
	return whole_text(c, name, first_line, text, len, true);
}

enum hm_exit script_check(struct context *c, const char *name, unsigned first_line,
			  const char *text, size_t len)
{
	return whole_text(c, name, first_line, text, len, false);
}

static unsigned count_lines(const char *text)
{
	unsigned n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

enum hm_exit script_exprs(struct context *c, char *const *expr, size_t n)
{
	enum hm_exit code = HM_OK;
	unsigned line = 1;

	for (size_t i = 0; i < n && code == HM_OK; i++) {
		code = script_check(c, "-e", line, expr[i], strlen(expr[i]));
		line += count_lines(expr[i]);
	}
	line = 1;
	if (code != HM_OK)
		return code;
	c->stopped = false;
	for (size_t i = 0; i < n && !c->stopped && !c->quit; i++) {
		enum hm_exit one = script_text(c, "-e", line, expr[i], strlen(expr[i]));

		code = one > code ? one : code;
		line += count_lines(expr[i]);
	}
	return code;
}

/* Room for more: doubles *buf, which is freed where that fails. */
static int buffer_grow(char **buf, size_t *cap)
{
	size_t more = *cap ? *cap * 2 : 65536;
	char *grown = more <= MAX_FILE ? realloc(*buf, more) : NULL;

	if (!grown) {
		free(*buf);
		*buf = NULL;
		return more <= MAX_FILE ? -ENOMEM : -EFBIG;
	}
	*buf = grown;
	*cap = more;
	return 0;
}

static int read_all(int fd, char **text, size_t *len)
{
	size_t used = 0, cap = 0;
	char *buf = NULL;
	int err = buffer_grow(&buf, &cap);

	while (!err) {
		ssize_t n = read(fd, buf + used, cap - used - 1);

		if (n == 0)
			break;
		if (n > 0)
			used += (size_t)n;
		else if (errno != EINTR || *signals_cancel())
			err = -errno;
		if (!err && used + 1 == cap)
			err = buffer_grow(&buf, &cap);
	}
	if (err) {
		free(buf);
		return err;
	}
	buf[used] = '\0';
	*text = buf;
	*len = used;
	return 0;
}

int script_read(const char *path, char **text, size_t *len, struct diag *d)
{
	bool in = strcmp(path, "-") == 0;
	int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : read_all(fd, text, len);

	if (!in && fd >= 0)
		close(fd);
	if (!err)
		return 0;
	return diag_fail(d, err, HM_USAGE, "cannot-read",
			 "give a file that can be read, or - for stdin", "cannot read %.300s: %s",
			 path, strerror(-err));
}

static enum hm_exit file_with_args(struct context *c, const char *path, struct diag *d)
{
	char *text = NULL;
	size_t len = 0;
	enum hm_exit code;

	if (script_read(path, &text, &len, d)) {
		context_error(c, d);
		return d->exit;
	}
	code = script_text(c, path, 1, text, len);
	free(text);
	return code;
}

enum hm_exit script_file(struct context *c, const char *path, int argc, char *const *argv)
{
	struct grammar_vars outer = c->vars;
	bool oneshot = c->oneshot, interactive = c->interactive, go_on = c->go_on;
	enum hm_exit code;
	struct diag d;

	diag_clear(&d);
	if (c->depth >= MAX_DEPTH) {
		diag_fail(&d, -ELOOP, HM_USAGE, "too-deep", "does a runbook run itself?",
			  "%d runbooks run one another", MAX_DEPTH);
		context_error(c, &d);
		return d.exit;
	}
	c->depth++;
	c->oneshot = false;
	c->interactive = false; /* a runbook does not ask */
	c->go_on = false;
	c->vars.argc = argc;
	c->vars.argv = argv;
	if (strcmp(path, "-") == 0)
		code = script_stream(c, "<stdin>", stdin);
	else
		code = file_with_args(c, path, &d);
	c->vars = outer;
	c->oneshot = oneshot;
	c->interactive = interactive;
	c->go_on = go_on;
	c->unmet = false;
	c->depth--;
	return code;
}

struct stream {
	char *text; /* lines that are not whole commands yet */
	size_t len;
	unsigned first; /* number of its first line */
	unsigned next;	/* number of the line to be read */
};

static int stream_add(struct stream *s, const char *line, size_t len)
{
	char *grown = len < MAX_FILE - s->len ? realloc(s->text, s->len + len + 1) : NULL;

	if (!grown)
		return -ENOMEM;
	memcpy(grown + s->len, line, len);
	s->text = grown;
	s->len += len;
	grown[s->len] = '\0';
	if (s->len == len)
		s->first = s->next;
	s->next++;
	return 0;
}

/* Runs what is whole. end: nothing more will come. */
static enum hm_exit stream_run(struct context *c, struct stream *s, bool end)
{
	unsigned line = s->first;
	struct grammar g;
	struct diag d;
	enum hm_exit code;
	int err;

	diag_clear(&d);
	c->stopped = false;
	if (end)
		err = parse_whole(c, s->text, s->len, s->first, &g, &line, &d);
	else
		err = grammar_parse(s->text, s->len, s->first, &c->vars, &g, &line, &d);
	if (err == -EAGAIN && !end)
		return HM_OK;
	s->len = 0;
	c->stopped = true;
	if (err)
		return tell(c, line, &d);
	code = check_all(c, &g);
	if (code == HM_OK)
		code = run_all(c, &g);
	grammar_free(&g);
	return code;
}

/*
 * One line with its newline into *line. A signal that does not end the run does not end the line
 * either. Returns its length, 0 at the end or when the run is cancelled, a negative errno.
 */
static ssize_t read_line(FILE *in, char **line, size_t *cap)
{
	size_t used = 0;

	for (;;) {
		int ch = getc(in);

		if (ch == EOF && ferror(in) && errno == EINTR && !*signals_cancel()) {
			clearerr(in);
			if (signals_take_stop())
				signals_stop_self();
			continue;
		}
		if (ch == EOF && ferror(in) && !*signals_cancel())
			return errno > 0 ? -errno : -EIO;
		if (ch == EOF)
			return *signals_cancel() ? 0 : (ssize_t)used;
		if (used + 1 >= *cap) {
			size_t more = *cap ? *cap * 2 : 256;
			char *grown = more <= MAX_FILE ? realloc(*line, more) : NULL;

			if (!grown)
				return more <= MAX_FILE ? -ENOMEM : -EFBIG;
			*line = grown;
			*cap = more;
		}
		(*line)[used++] = (char)ch;
		if (ch == '\n')
			return (ssize_t)used;
	}
}

static enum hm_exit stream_line(struct context *c, struct stream *s, const char *line, ssize_t n)
{
	struct diag d;

	c->stopped = true;

	c->origin.line = s->next;
	if (n < 0 && n != -ENOMEM) {
		/* What came before has run; an end that is none must not look like success. */
		diag_fail(&d, (int)n, HM_USAGE, "cannot-read", "give a file that can be read",
			  "cannot read the commands: %s", strerror((int)-n));
		return tell(c, s->next, &d);
	}
	if (n < 0 || !line || stream_add(s, line, (size_t)n)) {
		diag_internal(&d, -ENOMEM, "reading commands");
		return tell(c, s->next, &d);
	}
	return stream_run(c, s, false);
}

enum hm_exit script_stream(struct context *c, const char *name, FILE *in)
{
	struct origin outer = c->origin;
	struct stream s = { .next = 1 };
	enum hm_exit code = HM_OK, one = HM_OK;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	c->origin = (struct origin){ .name = name, .line = 1 };
	c->stopped = false;
	while (!c->stopped && !c->quit && !c->sink->write_error &&
	       (n = read_line(in, &line, &cap)) != 0) {
		one = stream_line(c, &s, line, n);
		code = one > code ? one : code;
	}
	if (!c->stopped && s.len && !c->quit) {
		one = stream_run(c, &s, true);
		code = one > code ? one : code;
	}
	if (code == HM_OK && *signals_cancel() && !c->quit)
		code = interrupted(c);
	free(line);
	free(s.text);
	c->origin = outer;
	return code;
}
