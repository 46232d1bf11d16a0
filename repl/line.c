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
#include "../inject/usage.h"
#include "history.h"
#include "last_look.h"
#include "line_complete.h"
#include "progress.h"
#include "prompt.h"
#include "script.h"
#include "signals.h"

#define POLL_MS	 1000 /* where there is no pidfd to wait for */
#define STRAY_NS 20000000L

enum woken { WOKEN_LINE, WOKEN_EOF, WOKEN_CANCEL, WOKEN_LEAVE, WOKEN_EXITED };

struct shell {
	struct context *c;
	struct history *history;
	char *line;  /* what readline has just delivered */
	bool done;   /* it has: a line, or the end of the input where line is NULL */
	char *text;  /* lines so far of a command that goes on */
	bool eof;    /* a Ctrl-D that came while a command ran */
	char *typed; /* of a line that the process's end has interrupted */
	struct last_look *last;
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

/*
 * Up and down look for lines that begin with what is typed, unless ~/.inputrc says otherwise: it is
 * read after this, and what it binds stays. A terminal sends one or the other form.
 */
static void bind_keys(Keymap map)
{
	rl_bind_keyseq_in_map("\\e[A", rl_history_search_backward, map);
	rl_bind_keyseq_in_map("\\eOA", rl_history_search_backward, map);
	rl_bind_keyseq_in_map("\\e[B", rl_history_search_forward, map);
	rl_bind_keyseq_in_map("\\eOB", rl_history_search_forward, map);
	rl_bind_keyseq_in_map("\\C-@", on_nul, map);
}

static void setup_readline(struct context *c)
{
	bind_keys(emacs_standard_keymap);
	bind_keys(vi_insertion_keymap);
	rl_readline_name = "heapmedic";
	rl_instream = stdin;
	rl_outstream = stderr; /* stdout is for data */
	rl_catch_signals = 0;  /* signals.c has them */
	rl_catch_sigwinch = 0;
	line_complete_setup(c);
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

/* What was typed is there again at the next prompt. */
static void keep_typed(struct shell *s, enum woken why)
{
	free(s->typed);
	s->typed = why == WOKEN_EXITED && rl_end ? strdup(rl_line_buffer) : NULL;
}

static void give_typed(struct shell *s)
{
	if (s->typed) {
		rl_insert_text(s->typed);
		rl_redisplay();
	}
	free(s->typed);
	s->typed = NULL;
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
			keep_typed(s, why);
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
	prompt.ended = s->c->ended;
	if (s->c->loaded) {
		prompt.rss = s->c->loaded->look.memory.usage.rss;
		prompt.saved = true;
	} else if (p) {
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
	give_typed(s);
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

/* One turn: a prompt, a line, what it says. False where the person leaves. */
static bool turn(struct shell *s, enum hm_exit *last)
{
	char *line = NULL;
	enum woken why;

	if (target_has_exited(s->c))
		last_look_use(s->last, s->c);
	progress_begin("heapmedic");
	last_look_take(s->last, s->c);
	progress_end();
	why = read_line(s, &line);
	if (why == WOKEN_LINE)
		run_line(s, line, last);
	free(line);
	if (why == WOKEN_CANCEL) {
		free(s->text);
		s->text = NULL;
	}
	if (why == WOKEN_EXITED)
		last_look_use(s->last, s->c);
	if (why == WOKEN_EOF && isatty(STDERR_FILENO))
		fputc('\n', stderr);
	return why != WOKEN_EOF && why != WOKEN_LEAVE;
}

enum hm_exit line_shell(struct context *c)
{
	struct shell s = { .c = c };
	struct process *p;
	enum hm_exit code = HM_OK;
	struct diag d;
	bool failed;

	diag_clear(&d);
	c->set = c->base;
	progress_begin("heapmedic");
	failed = !c->loaded && context_process(c, &p, &d);
	progress_end();
	if (failed) {
		context_error(c, &d);
		return d.exit;
	}
	c->interactive = true;
	shell = &s;
	setup_readline(c);
	s.history = history_open();
	s.last = last_look_new();
	while (!c->quit && !c->sink->write_error && turn(&s, &code))
		;
	history_close(s.history);
	if (c->ended)
		c->loaded = NULL;
	last_look_free(s.last);
	free(s.typed);
	free(s.text);
	shell = NULL;
	return code;
}
