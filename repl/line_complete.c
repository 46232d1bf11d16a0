// SPDX-License-Identifier: GPL-3.0-or-later
#include "line_complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "../agent/process.h"
#include "../inject/threads.h"
#include "complete.h"

#define MAX_MATCHES 1000

/* readline's callbacks carry no argument. */
static const struct context *context;
static struct {
	char *v[MAX_MATCHES];
	size_t n, next;
} choices;

static char *next_choice(const char *text, int state)
{
	(void)text;
	(void)state;
	/* readline frees what it is given. */
	return choices.next < choices.n ? choices.v[choices.next++] : NULL;
}

/* Allocated; NULL where there is none, or no memory. */
static pid_t *read_tids(size_t *n)
{
	struct threads list = { 0 };
	const struct process *p = context->process;
	pid_t *tids = NULL;

	*n = 0;
	if (p && threads_read(&p->t, &list, NULL) == 0)
		tids = calloc(list.n + 1, sizeof(*tids));
	for (size_t i = 0; tids && i < list.n; i++)
		tids[(*n)++] = list.v[i].tid;
	threads_free(&list);
	return tids;
}

static void collect_choices(int *files)
{
	struct complete_env env = { .arena = context->arena, .arenas = context->arenas };
	struct running *running = NULL;
	size_t start, cursor = (size_t)rl_point;
	pid_t *tids = read_tids(&env.tids);

	/* all of /proc is read only where it is asked for */
	if (complete_about(rl_line_buffer, cursor) == COMPLETE_PROCESS &&
	    targets_running(&running, &env.running_n))
		env.running_n = 0;
	env.tid = tids;
	env.running = running;
	choices.next = 0;
	choices.n = complete(rl_line_buffer, cursor, &env, choices.v, MAX_MATCHES, &start, files);
	free(tids);
	free(running);
}

/* Behind "arena.0." more is typed, and no blank. */
static bool goes_on(const char *word)
{
	size_t n = strlen(word);

	return n && word[n - 1] == '.';
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
	if (choices.n == 1 && goes_on(choices.v[0]))
		rl_completion_append_character = '\0';
	matches = choices.n ? rl_completion_matches(text, next_choice) : NULL;
	while (choices.next < choices.n)
		free(choices.v[choices.next++]);
	return matches;
}

void line_complete_setup(struct context *c)
{
	context = c;
	rl_attempted_completion_function = on_complete;
	rl_basic_word_break_characters = " \t;";
	rl_completer_word_break_characters = " \t;";
}
