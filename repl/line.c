// SPDX-License-Identifier: GPL-3.0-or-later
#include "line.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/readline.h>

#include "../agent/process.h"
#include "../agent/snapshot.h"
#include "../inject/stray.h"
#include "../inject/threads.h"
#include "../inject/usage.h"
#include "complete.h"
#include "history.h"
#include "prompt.h"
#include "script.h"
#include "signals.h"

#define MAX_MATCHES 600
#define POLL_MS	    1000 /* where there is no pidfd to wait for */
#define STRAY_NS    20000000L

enum woken { WOKEN_LINE, WOKEN_EOF, WOKEN_CANCEL, WOKEN_LEAVE, WOKEN_EXITED };

struct shell {
	struct context *c;
	struct history *history;
	char *line; /* what readline has just delivered */
	bool done;  /* it has: a line, or the end of the input where line is NULL */
	char *text; /* lines so far of a command that goes on */
	bool eof;   /* a Ctrl-D that came while a command ran */
};

/* readline's callbacks carry no argument: the one shell there is. */
static struct shell *shell;

static void on_line(char *line)
{
	shell->line = line;
	shell->done = true;
	/* At once: the terminal has to be as it was before a command writes to it. */
	rl_callback_handler_remove();
}

/* ---- completion */

struct choices {
	char *v[MAX_MATCHES];
	size_t n, next;
};
static struct choices choices;

static char *next_choice(const char *text, int state)
{
	(void)text;
	(void)state;
	/* readline frees what it is given. */
	return choices.next < choices.n ? choices.v[choices.next++] : NULL;
}

static void collect_choices(int *files)
{
	struct complete_env env = { 0 };
	struct threads list = { 0 };
	struct process *p = shell->c->process;
	size_t start;
	pid_t *tids = NULL;

	if (p && threads_read(&p->t, &list, NULL) == 0)
		tids = calloc(list.n + 1, sizeof(*tids));
	for (size_t i = 0; tids && i < list.n; i++)
		tids[env.n++] = list.v[i].tid;
	env.tid = tids;
	choices.next = 0;
	choices.n = complete(rl_line_buffer, (size_t)rl_point, &env, choices.v, MAX_MATCHES, &start,
			     files);
	free(tids);
	threads_free(&list);
}

static char **on_complete(const char *text, int start, int end)
{
	char **matches;
	int files = 0;

	(void)start;
	(void)end;
	collect_choices(&files);
	/* Only where a file is wanted may readline go on to complete file names. */
	rl_attempted_completion_over = !files;
	matches = choices.n ? rl_completion_matches(text, next_choice) : NULL;
	while (choices.next < choices.n)
		free(choices.v[choices.next++]);
	return matches;
}

/*
 * A Ctrl-D that is typed while a command runs is kept by the terminal as a NUL once the mode
 * changes (n_tty of Linux), which would be no more than a mark.
 */
static int on_nul(int count, int key)
{
	if (rl_end > 0)
		return rl_set_mark(count, key);
	shell->eof = true;
	return 0;
}

static void setup_readline(void)
{
	rl_bind_keyseq("\\C-@", on_nul);
	rl_readline_name = "heapmedic";
	rl_instream = stdin;
	rl_outstream = stderr; /* stdout is for data */
	rl_catch_signals = 0;  /* signals.c has them */
	rl_catch_sigwinch = 0;
	rl_attempted_completion_function = on_complete;
	rl_basic_word_break_characters = " \t;";
	rl_completer_word_break_characters = " \t;";
}

/* ---- waiting */

/* Ctrl-C at the prompt: the line so far is dropped. */
static void drop_line(void)
{
	rl_free_line_state();
	rl_callback_sigcleanup();
	rl_replace_line("", 0);
	rl_crlf();
	rl_on_new_line();
	rl_redisplay();
}

/* Ctrl-Z at the prompt: the terminal as it was while we are stopped. */
static void stop_here(void)
{
	rl_deprep_terminal();
	rl_crlf();
	signals_stop_self();
	rl_prep_terminal(1);
	rl_on_new_line();
	rl_redisplay();
}

static bool target_has_exited(const struct context *c)
{
	return c->process && !target_alive(&c->process->t);
}

/* One wait for a key, a signal or the target's end. Signals get through only inside ppoll(2). */
static bool wait_once(struct context *c, enum woken *why)
{
	/* a thread that was stuck when it was asked to stop waits for us when it comes out */
	bool stuck = stray_collect() > 0;
	struct timespec tick = { .tv_sec = stuck ? 0 : POLL_MS / 1000,
				 .tv_nsec = stuck ? STRAY_NS : 0 };
	int pidfd = c->process ? c->process->t.pidfd : -1;
	struct pollfd fds[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = pidfd, .events = POLLIN },
	};
	sigset_t before;
	int n = 0;

	signals_block(&before);
	if (!*signals_cancel())
		n = ppoll(fds, 2, pidfd < 0 || stuck ? &tick : NULL, &before);
	signals_unblock(&before);
	if (signals_leaving())
		*why = WOKEN_LEAVE;
	else if (*signals_cancel())
		*why = WOKEN_CANCEL;
	else if ((n > 0 && fds[1].revents) || (pidfd < 0 && target_has_exited(c)))
		*why = WOKEN_EXITED;
	else
		return n > 0 && fds[0].revents;
	return false;
}

/* Waits until a line is there or something else ends the wait. */
static enum woken wait_line(struct shell *s)
{
	enum woken why = WOKEN_LINE;

	while (!s->done) {
		bool key = wait_once(s->c, &why);

		if (why == WOKEN_CANCEL) {
			signals_rearm();
			drop_line();
			return WOKEN_CANCEL;
		}
		if (why != WOKEN_LINE) {
			rl_callback_handler_remove();
			fputc('\n', stderr);
			return why;
		}
		if (signals_take_winch())
			rl_resize_terminal();
		if (signals_take_stop())
			stop_here();
		if (key)
			rl_callback_read_char();
		if (s->eof && !s->done) {
			rl_callback_handler_remove();
			return WOKEN_EOF;
		}
	}
	return s->line ? WOKEN_LINE : WOKEN_EOF;
}

static void make_prompt(const struct shell *s, char *buf, size_t size)
{
	const struct process *p = s->c->process;
	struct prompt prompt = {
		.comm = s->c->comm,
		.pid = s->c->pid,
		.color = s->c->sink->color_err,
	};

	if (s->text) {
		snprintf(buf, size, "> ");
		return;
	}
	if (s->c->loaded) {
		prompt.rss = s->c->loaded->look.memory.usage.rss;
		prompt.saved = true;
	} else {
		if (usage_rss(&p->t, &prompt.rss))
			prompt.rss = 0;
		prompt.proxy = p->session && session_is_proxy(p->session);
	}
	prompt_format(&prompt, buf, size);
}

/* A line of the person's; *line is malloc'ed where WOKEN_LINE is returned. */
static enum woken read_line(struct shell *s, char **line)
{
	char prompt[160];
	enum woken why;

	make_prompt(s, prompt, sizeof(prompt));
	s->line = NULL;
	s->done = false;
	rl_callback_handler_install(prompt, on_line);
	do {
		why = wait_line(s);
		if (why == WOKEN_CANCEL && s->text) {
			/* Also the lines before it: back to the first prompt. */
			rl_callback_handler_remove();
			return why;
		}
	} while (why == WOKEN_CANCEL);
	*line = s->line;
	return why;
}

/* ---- running */

/* Adds line to the text so far. False: no memory, the text is dropped. */
static bool add_text(struct shell *s, const char *line)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", s->text ? s->text : "", s->text ? "\n" : "", line) < 0)
		joined = NULL;
	free(s->text);
	s->text = joined;
	return joined != NULL;
}

static bool goes_on(const struct shell *s)
{
	struct grammar g;
	unsigned at;
	int err = grammar_parse(s->text, strlen(s->text), 0, &s->c->vars, &g, &at, NULL);

	if (!err)
		grammar_free(&g);
	return err == -EAGAIN;
}

static void run_line(struct shell *s, const char *line, enum hm_exit *last)
{
	history_remember(s->history, line);
	if (!add_text(s, line) || goes_on(s))
		return;
	if (s->text[strspn(s->text, " \t\n;")])
		*last = script_text(s->c, "shell", 0, s->text, strlen(s->text));
	free(s->text);
	s->text = NULL;
	signals_rearm();
}

static void say_goodbye(struct shell *s, enum woken why)
{
	if (why == WOKEN_EXITED)
		context_note(s->c, "%s (pid %d) has exited", s->c->comm, (int)s->c->pid);
	else if (why == WOKEN_EOF && isatty(STDERR_FILENO))
		fputc('\n', stderr);
}

static enum hm_exit loop(struct shell *s)
{
	enum hm_exit last = HM_OK;
	enum woken why = WOKEN_LINE;

	while (!s->c->quit && !s->c->sink->write_error) {
		char *line = NULL;

		why = read_line(s, &line);
		if (why == WOKEN_CANCEL) {
			free(s->text);
			s->text = NULL;
			continue;
		}
		if (why != WOKEN_LINE)
			break;
		run_line(s, line, &last);
		free(line);
	}
	say_goodbye(s, why);
	return last;
}

enum hm_exit line_shell(struct context *c)
{
	struct shell s = { .c = c };
	struct process *p;
	enum hm_exit code;
	struct diag d;

	diag_clear(&d);
	c->set = c->base;
	if (!c->loaded && context_process(c, &p, &d)) {
		context_error(c, &d);
		return d.exit;
	}
	c->interactive = true;
	shell = &s;
	setup_readline();
	s.history = history_open();
	code = loop(&s);
	history_close(s.history);
	free(s.text);
	shell = NULL;
	return code;
}
