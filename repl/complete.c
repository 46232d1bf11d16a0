// SPDX-License-Identifier: GPL-3.0-or-later
#include "complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/facts.h"
#include "../agent/glibc.h"
#include "../agent/mallctl.h"
#include "command.h"
#include "grammar.h"
#include "prof.h"
#include "settings.h"

#define MAX_BEFORE 64

struct matches {
	const char *word; /* what is typed so far; not terminated */
	size_t len;
	char **out;
	size_t n, max;
};

static void offer_kind(struct matches *m, enum completion kind, const struct complete_env *env,
		       int *files);

static void offer(struct matches *m, const char *text)
{
	if (m->n < m->max && strncmp(text, m->word, m->len) == 0) {
		m->out[m->n] = strdup(text);
		m->n += m->out[m->n] != NULL;
	}
}

static void offer_option(struct matches *m, const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "--%s", name);
	offer(m, text);
}

static void offer_options(struct matches *m, const struct command *row)
{
	size_t n;
	const struct option_row *common = option_table(&n);

	for (size_t i = 0; i < COMMAND_OPTIONS && row->options[i].name; i++)
		offer_option(m, row->options[i].name);
	for (size_t i = 0; i < n; i++)
		if (common[i].name && (common[i].places & OPT_LINE))
			offer_option(m, common[i].name);
}

static void offer_commands(struct matches *m)
{
	size_t n;
	const struct command *row = command_table(&n);

	for (size_t i = 0; i < n; i++) {
		offer(m, row[i].name);
		if (row[i].alias)
			offer(m, row[i].alias);
	}
}

/* How much of an index is typed at s: digits, or all; not more than left. */
static size_t typed_index(const char *s, size_t left)
{
	size_t n = 0;

	while (n < left && n < 20 && s[n] >= '0' && s[n] <= '9')
		n++;
	return n == 0 && left >= 3 && strncmp(s, "all", 3) == 0 ? 3 : n;
}

/* Numbers of arenas are few, and behind one another where they are offered twice. */
static void offer_once(struct matches *m, const char *text)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->out[i], text) == 0)
			return;
	offer(m, text);
}

static bool text_is_arenas(const char *text)
{
	return strcmp(text, "arena.") == 0 || strcmp(text, "stats.arenas.") == 0;
}

/*
 * A name of the table with the indices that are typed already: for "arena.0.pu" arena.<i>.purge is
 * arena.0.purge. Where the next index is still to be typed, the offer ends with it.
 */
static void offer_indexed(struct matches *m, const char *name, const struct complete_env *env)
{
	char text[128], full[160];
	size_t used = 0;
	bool known;

	while (*name && used < sizeof(text) - 24) {
		const char *typed = m->word + used;
		size_t left = m->len > used ? m->len - used : 0, n;

		if (*name != '<') {
			if (left && *typed != *name)
				return;
			text[used++] = *name++;
			continue;
		}
		n = typed_index(typed, left);
		if (n == left || (!n && left < 3 && !strncmp("all", typed, left)))
			break;
		memcpy(text + used, typed, n);
		used += n;
		name += 3;
	}
	text[used] = '\0';
	if (!*name) {
		offer(m, text);
		return;
	}
	known = env->arenas && text_is_arenas(text);
	for (size_t i = 0; known && i < env->arenas; i++) {
		snprintf(full, sizeof(full), "%s%u.", text, env->arena[i]);
		offer_once(m, full);
	}
	/* one that is typed may be right all the same */
	if (m->len > used ? m->word[used] != 'a' : !known) {
		snprintf(full, sizeof(full), "%s%.*s.", text,
			 m->len > used ? (int)(m->len - used) : 1,
			 m->len > used ? m->word + used : "0");
		offer_once(m, full);
	}
	snprintf(full, sizeof(full), "%sall.", text);
	offer_once(m, full);
}

static void offer_ctl(struct matches *m, const struct complete_env *env)
{
	size_t n;
	const struct ctl_name *row = ctl_table(&n);

	for (size_t i = 0; i < n; i++)
		if (!row[i].forbidden)
			offer_indexed(m, row[i].name, env);
}

/* Behind a name that takes true or false. */
static void offer_ctl_value(struct matches *m, const char *name)
{
	const struct ctl_name *row = ctl_find(name);

	if (row && row->type == CTL_BOOL && (row->access & CTL_WRITE)) {
		offer(m, "true");
		offer(m, "false");
	}
}

static void offer_facts(struct matches *m)
{
	for (unsigned i = 0; i < FACT_COUNT; i++)
		offer(m, fact_info((enum fact_id)i)->name);
}

static void offer_mallopt(struct matches *m)
{
	size_t n;
	const struct mallopt_fact *fact = mallopt_table(&n);

	for (size_t i = 0; i < n; i++)
		offer(m, fact[i].name);
}

static void offer_keys(struct matches *m)
{
	size_t n;
	const struct option_row *row = option_table(&n);

	for (size_t i = 0; i < n; i++)
		if (row[i].places & OPT_SET)
			offer(m, row[i].name);
}

static void offer_tids(struct matches *m, const struct complete_env *env)
{
	char tid[16];

	for (size_t i = 0; i < env->tids; i++) {
		snprintf(tid, sizeof(tid), "%d", (int)env->tid[i]);
		offer(m, tid);
	}
}

static void offer_arenas(struct matches *m, const struct complete_env *env)
{
	char number[16];

	for (size_t i = 0; i < env->arenas; i++) {
		snprintf(number, sizeof(number), "%u", env->arena[i]);
		offer(m, number);
	}
}

/* A name with a blank or a quote in it would be several words: that one has its pid. */
static bool is_word(const char *name)
{
	return *name && !strpbrk(name, " \t;'\"\\$#");
}

/* Names; pids where a digit is typed. */
static void offer_running(struct matches *m, const struct complete_env *env)
{
	bool number = m->len && m->word[0] >= '0' && m->word[0] <= '9';
	char pid[16];

	for (size_t i = 0; i < env->running_n; i++) {
		snprintf(pid, sizeof(pid), "%d", (int)env->running[i].pid);
		if (number)
			offer(m, pid);
		else if (is_word(env->running[i].comm))
			offer_once(m, env->running[i].comm);
	}
}

/*
 * One word of a usage or what an option takes, as in "all|INDEX" or "auto|proxy|direct": small
 * letters stand for themselves, these names for what there is.
 */
static void offer_meta(struct matches *m, const char *meta, size_t len,
		       const struct complete_env *env, int *files)
{
	static const struct {
		const char *name;
		enum completion what;
	} names[] = {
		{ "FILE", COMPLETE_FILE },	 { "HEAP", COMPLETE_FILE },
		{ "A", COMPLETE_FILE },		 { "EXPR", COMPLETE_FACT },
		{ "COMMAND", COMPLETE_COMMAND }, { "TID", COMPLETE_TID },
		{ "INDEX", COMPLETE_ARENA },
	};
	char word[32];

	for (size_t n; len; meta += n, len -= n) {
		n = strcspn(meta, "[]|.");
		n = n > len ? len : n;
		snprintf(word, sizeof(word), "%.*s", (int)n, meta);
		if (n && word[0] >= 'a' && word[0] <= 'z')
			offer(m, word);
		for (size_t i = 0; n && i < sizeof(names) / sizeof(names[0]); i++)
			if (strcmp(word, names[i].name) == 0)
				offer_kind(m, names[i].what, env, files);
		n += n < len;
	}
}

/* The nth word of "[dirty|muzzy] [all|INDEX]". */
static void offer_usage(struct matches *m, const char *usage, size_t nth,
			const struct complete_env *env, int *files)
{
	while (nth-- && usage)
		usage = strchr(usage, ' ') ? strchr(usage, ' ') + 1 : NULL;
	if (usage)
		offer_meta(m, usage, strcspn(usage, " "), env, files);
}

/* What `set KEY` takes, by the row's kind and what it says of its values. */
static void offer_values(struct matches *m, const char *key, const struct complete_env *env)
{
	const struct option_row *row = option_by_name(key, strlen(key), OPT_SET);
	int files;

	if (row && row->kind == OPT_BOOL)
		offer_meta(m, "on|off", strlen("on|off"), env, &files);
	else if (row && row->meta)
		offer_meta(m, row->meta, strlen(row->meta), env, &files);
}

/* What prof does, then the file that some of it take. */
static void offer_prof(struct matches *m, size_t nth, int *files)
{
	const char *name;

	*files = nth > 0;
	for (size_t i = 0; nth == 0 && (name = prof_name(i)); i++)
		offer(m, name);
}

static void offer_kind(struct matches *m, enum completion kind, const struct complete_env *env,
		       int *files)
{
	switch (kind) {
	case COMPLETE_COMMAND:
		offer_commands(m);
		break;
	case COMPLETE_TID:
		offer_tids(m, env);
		break;
	case COMPLETE_ARENA:
		offer_arenas(m, env);
		break;
	case COMPLETE_FACT:
		offer_facts(m);
		break;
	case COMPLETE_PROCESS:
		offer_running(m, env);
		break;
	case COMPLETE_FILE:
		*files = 1;
		break;
	default:
		break;
	}
}

/* The words of a command: nth counts those before the one in progress, without options. */
static void offer_words(struct matches *m, const struct command *row, size_t nth, const char *last,
			const struct complete_env *env, int *files)
{
	switch (row->completes) {
	case COMPLETE_COMMAND:
	case COMPLETE_PROCESS:
		if (nth == 0)
			offer_kind(m, row->completes, env, files);
		break;
	case COMPLETE_CTL:
		if (nth == 0)
			offer_ctl(m, env);
		else if (nth == 1)
			offer_ctl_value(m, last);
		break;
	case COMPLETE_MALLOPT:
		if (nth == 0)
			offer_mallopt(m);
		break;
	case COMPLETE_SET:
		if (nth == 0)
			offer_keys(m);
		else if (nth == 1)
			offer_values(m, last, env);
		break;
	case COMPLETE_USAGE:
		offer_usage(m, row->usage, nth, env, files);
		break;
	case COMPLETE_PROF:
		offer_prof(m, nth, files);
		break;
	default:
		offer_kind(m, row->completes, env, files);
		break;
	}
}

/* What the option before the word takes: its own or one that any command has; NULL: no such option,
 * or it takes nothing. */
static const char *value_wanted(const struct command *row, const char *before)
{
	const struct option_row *common;
	int own;

	if (strncmp(before, "--", 2) != 0)
		return NULL;
	own = command_option(row, before + 2, strlen(before + 2));
	if (own >= 0)
		return row->options[own].meta;
	common = option_by_name(before + 2, strlen(before + 2), OPT_LINE);
	return common ? common->meta : NULL;
}

/* Where a command of its own begins: behind `then`. */
static size_t inner_command(const struct command *row, char **before, size_t n)
{
	if (row && (row->flags & CMD_PREFIX))
		for (size_t i = 1; i < n; i++)
			if (strcmp(before[i], "then") == 0)
				return i + 1;
	return 0;
}

/* Passes the commands that another follows. True: the name of that other is still to be typed. */
static bool pass_prefixes(char ***before, size_t *n, const struct command **row)
{
	size_t inner;

	*row = command_find(**before);
	while ((inner = inner_command(*row, *before, *n)) && inner < *n) {
		*before += inner;
		*n -= inner;
		*row = command_find(**before);
	}
	return inner != 0;
}

static void complete_command(struct matches *m, char **before, size_t n,
			     const struct complete_env *env, int *files)
{
	const struct command *row;
	const char *value;
	size_t words = 0;

	if (pass_prefixes(&before, &n, &row)) {
		offer_commands(m);
		return;
	}
	if (!row)
		return;
	for (size_t i = 1; i < n; i++)
		words += before[i][0] != '-';
	value = value_wanted(row, before[n - 1]);
	if (value)
		offer_meta(m, value, strlen(value), env, files);
	else if (m->len && m->word[0] == '-')
		offer_options(m, row);
	else
		offer_words(m, row, words, before[n - 1], env, files);
}

enum completion complete_about(const char *line, size_t cursor)
{
	char buf[1024], *words[MAX_BEFORE], **before = words;
	size_t start, n = grammar_before(line, cursor, buf, sizeof(buf), words, MAX_BEFORE, &start);
	const struct command *row = NULL;

	if (n)
		(void)pass_prefixes(&before, &n, &row);
	return row ? row->completes : COMPLETE_COMMAND;
}

size_t complete(const char *line, size_t cursor, const struct complete_env *env, char **out,
		size_t max, size_t *start, int *files)
{
	char buf[1024], *before[MAX_BEFORE];
	size_t n = grammar_before(line, cursor, buf, sizeof(buf), before, MAX_BEFORE, start);
	struct matches m = {
		.word = line + *start,
		.len = cursor - *start,
		.out = out,
		.max = max,
	};

	*files = 0;
	if (n == 0)
		offer_commands(&m);
	else
		complete_command(&m, before, n, env, files);
	return m.n;
}
