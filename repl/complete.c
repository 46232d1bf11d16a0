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

#define MAX_BEFORE 16

struct matches {
	const char *word; /* what is typed so far; not terminated */
	size_t len;
	char **out;
	size_t n, max;
};

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

static void offer_once(struct matches *m, const char *text)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->out[i], text) == 0)
			return;
	offer(m, text);
}

/*
 * A name of the table with the indices that are typed already: for "arena.0.pu" arena.<i>.purge is
 * arena.0.purge. Where the next index is still to be typed, the offer ends with it.
 */
static void offer_indexed(struct matches *m, const char *name)
{
	char text[128], full[160];
	size_t used = 0;

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
	snprintf(full, sizeof(full), "%s%.*s.", text, m->len > used ? (int)(m->len - used) : 1,
		 m->len > used ? m->word + used : "0");
	if (m->len <= used || m->word[used] != 'a')
		offer_once(m, full);
	snprintf(full, sizeof(full), "%sall.", text);
	offer_once(m, full);
}

static void offer_ctl(struct matches *m)
{
	size_t n;
	const struct ctl_name *row = ctl_table(&n);

	for (size_t i = 0; i < n; i++)
		if (!row[i].forbidden)
			offer_indexed(m, row[i].name);
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

static void offer_choices(struct matches *m, const char *const *words)
{
	for (; *words; words++)
		offer(m, *words);
}

/* The words of "[dirty|muzzy] [all|INDEX]" that stand for themselves: those in small letters. */
static void offer_usage(struct matches *m, const char *usage, size_t nth)
{
	char word[32];

	while (nth-- && usage)
		usage = strchr(usage, ' ') ? strchr(usage, ' ') + 1 : NULL;
	while (usage && *usage && *usage != ' ') {
		size_t n = strcspn(usage, "[]| ");

		if (n && n < sizeof(word) && *usage >= 'a' && *usage <= 'z') {
			memcpy(word, usage, n);
			word[n] = '\0';
			offer(m, word);
		}
		usage += n;
		usage += strspn(usage, "[]|");
	}
}

static void offer_values(struct matches *m, const char *key)
{
	static const char *const on_off[] = { "on", "off", NULL };
	static const char *const colors[] = { "auto", "always", "never", NULL };
	static const char *const vias[] = { "auto", "proxy", "direct", NULL };
	const struct option_row *row = option_by_name(key, strlen(key), OPT_SET);

	if (row && row->kind == OPT_BOOL)
		offer_choices(m, on_off);
	else if (row && row->kind == OPT_COLOR)
		offer_choices(m, colors);
	else if (row && row->kind == OPT_VIA)
		offer_choices(m, vias);
}

static void offer_tids(struct matches *m, const struct complete_env *env)
{
	char tid[16];

	for (size_t i = 0; i < env->n; i++) {
		snprintf(tid, sizeof(tid), "%d", (int)env->tid[i]);
		offer(m, tid);
	}
	offer(m, "all");
}

/* What prof does, then the file that some of it take. */
static void offer_prof(struct matches *m, size_t nth, int *files)
{
	const char *name;

	*files = nth > 0;
	for (size_t i = 0; nth == 0 && (name = prof_name(i)); i++)
		offer(m, name);
}

/* The words of a command: nth counts those before the one in progress, without options. */
static void offer_words(struct matches *m, const struct command *row, size_t nth, const char *last,
			const struct complete_env *env, int *files)
{
	switch (row->completes) {
	case COMPLETE_COMMAND:
		if (nth == 0)
			offer_commands(m);
		break;
	case COMPLETE_CTL:
		if (nth == 0)
			offer_ctl(m);
		break;
	case COMPLETE_MALLOPT:
		if (nth == 0)
			offer_mallopt(m);
		break;
	case COMPLETE_SET:
		if (nth == 0)
			offer_keys(m);
		else if (nth == 1)
			offer_values(m, last);
		break;
	case COMPLETE_TID:
		if (nth == 0)
			offer_tids(m, env);
		break;
	case COMPLETE_USAGE:
		offer_usage(m, row->usage, nth);
		break;
	case COMPLETE_FACT:
		offer_facts(m);
		break;
	case COMPLETE_PROF:
		offer_prof(m, nth, files);
		break;
	case COMPLETE_FILE:
		*files = 1;
		break;
	default:
		break;
	}
}

/* The word before is an option of row that takes a file. */
static bool wants_file(const struct command *row, const char *before)
{
	int own = strncmp(before, "--", 2) == 0
			  ? command_option(row, before + 2, strlen(before + 2))
			  : -1;

	return own >= 0 && row->options[own].meta && strcmp(row->options[own].meta, "FILE") == 0;
}

static void complete_command(struct matches *m, char **before, size_t n,
			     const struct complete_env *env, int *files)
{
	const struct command *row = command_find(before[0]);
	size_t words = 0;

	if (!row)
		return;
	for (size_t i = 1; i < n; i++)
		words += before[i][0] != '-';
	if (wants_file(row, before[n - 1]))
		*files = 1;
	else if (m->len && m->word[0] == '-')
		offer_options(m, row);
	else
		offer_words(m, row, words, before[n - 1], env, files);
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
