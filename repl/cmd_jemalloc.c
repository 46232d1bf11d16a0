// SPDX-License-Identifier: GPL-3.0-or-later
/* purge and background_thread. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/ctl_error.h"
#include "../agent/jemalloc.h"
#include "../agent/jemalloc_change.h"
#include "context.h"
#include "effect_text.h"
#include "view.h"

#define INDENT 2 /* of a line that goes on below */

/* ---- words */

/* "all" (JEMALLOC_ALL), or the number of an arena. */
int arena_parse(const char *word, long *out, struct diag *d)
{
	char *end;

	if (!word || strcmp(word, "all") == 0) {
		*out = JEMALLOC_ALL;
		return 0;
	}
	*out = strtol(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || *out >= JEMALLOC_ARENAS_MAX)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value",
				 "give all, or a number from 0 on", "'%.40s' is no arena", word);
	return 0;
}

/* ---- purge */

int check_purge(const struct args *a, struct diag *d)
{
	long index;

	return arena_parse(a->argc ? a->argv[0] : NULL, &index, d);
}

static const struct jemalloc_arena *find_arena(const struct jemalloc_arenas *all, long index)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].index == index)
			return &all->v[i];
	return NULL;
}

/* Of one arena, or of all that are there. */
static bool unused_pages(const struct jemalloc_arenas *all, long index, int64_t *dirty,
			 int64_t *muzzy)
{
	const struct jemalloc_arena *a =
		index == JEMALLOC_ALL ? &all->total : find_arena(all, index);

	/* muzzy is younger than dirty */
	*muzzy = 0;
	(void)(a && jemalloc_figure(a, JEM_MUZZY, muzzy));
	return a && jemalloc_figure(a, JEM_DIRTY, dirty);
}

bool purge_outlook(struct context *c, const struct allocator *jemalloc, long index)
{
	char sum[SIZE_TEXT], d_text[SIZE_TEXT], m_text[SIZE_TEXT];
	struct jemalloc_arenas own;
	const struct jemalloc_arenas *all;
	int64_t dirty = 0, muzzy = 0;
	struct diag d;
	bool known;

	diag_clear(&d);
	if (view_jemalloc(c, jemalloc, &own, &all, &d))
		return false;
	known = unused_pages(all, index, &dirty, &muzzy);
	jemalloc_arenas_free(&own);
	if (known)
		fprintf(c->sink->out, "predicted up to -%s: dirty %s, muzzy %s (called)\n",
			text_size_fine(sum, (uint64_t)(dirty + muzzy), c->set.bytes),
			text_size_fine(d_text, (uint64_t)dirty, c->set.bytes),
			text_size_fine(m_text, (uint64_t)muzzy, c->set.bytes));
	return known;
}

static int plan_purge(struct context *c, struct reply *r, const struct allocator *jemalloc,
		      long index)
{
	char call[48] = "arena.<all>.purge";

	if (index != JEMALLOC_ALL)
		snprintf(call, sizeof(call), "arena.%ld.purge", index);
	if (c->set.json) {
		reply_set(r, "dry_run", json_true());
		reply_set(r, "call", json_string(call));
		return 0;
	}
	fprintf(c->sink->out, "would call mallctl(\"%s\")%s\n", call, context_undone(c));
	if (!c->asks || !purge_outlook(c, jemalloc, index))
		fprintf(c->sink->out, "what it would return is not known without a call "
				      "(`arenas`: dirty and muzzy)\n");
	return 0;
}

int cmd_purge(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct jemalloc_effect e;
	long index;
	int err = arena_parse(a->argc ? a->argv[0] : NULL, &index, d);

	if (!err)
		err = find_jemalloc(c, r, &jemalloc, d);
	if (err)
		return err;
	if (c->set.dry_run)
		return plan_purge(c, r, jemalloc, index);
	err = jemalloc_purge_measured(c->process, jemalloc, index, &e, d);
	if (err)
		return err;
	if (c->set.json) {
		effect_json(r, &e, jemalloc);
		return 0;
	}
	effect_line(c, &e);
	effect_books(c, &e);
	return 0;
}

/* ---- background_thread */

int check_background_thread(const struct args *a, struct diag *d)
{
	if (!a->argc || strcmp(a->argv[0], "on") == 0 || strcmp(a->argv[0], "off") == 0)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "write on or off",
			 "background_thread: '%.40s' is neither", a->argv[0]);
}

unsigned effect_background_thread(const struct args *a)
{
	return a->argc ? CMD_CALLS | CMD_WRITES : CMD_CALLS;
}

#define WHAT_IT_MEANS                                                                              \
	"jemalloc would start threads in the process, which stay: made by heapmedic's thread, "    \
	"they share its descriptor table and not the program's, and each thread counts in its "    \
	"limits"

/* The program did not ask for threads: whoever wants them must say so, knowing what they are. */
static int check_agreed(const struct context *c, struct diag *d)
{
	/* the shell has told them, and asked */
	if (c->set.yes || (c->interactive && c->set.confirm))
		return 0;
	return diag_fail(d, -EPERM, HM_UNSAFE, "starts-threads",
			 "give --yes if that is all right; or start the program with "
			 "background_thread:true among its options, or lower the decay times "
			 "(`decay`)",
			 "%s", WHAT_IT_MEANS);
}

static int set_threads(struct context *c, struct reply *r, const struct allocator *jemalloc,
		       bool on, struct diag *d)
{
	const struct ctl_name *row = ctl_find("background_thread");
	const struct ctl_value value = { .type = CTL_BOOL, .b = on };
	struct ctl_value old;
	int err = on ? check_agreed(c, d) : 0;

	if (!err)
		err = jemalloc_ctl_at(c->process, jemalloc, row->name, row, &value, &old, NULL,
				      NULL, on, d);
	if (err)
		return err;
	reply_set(r, "old", ctl_value_json(&old));
	reply_set(r, "new", json_boolean(on));
	if (!c->set.json)
		fprintf(c->sink->out, "background_thread %s%s\n",
			old.type != CTL_BOOL ? ""
			: old.b		     ? "on -> "
					     : "off -> ",
			on ? "on" : "off");
	if (on && !(old.type == CTL_BOOL && old.b))
		reply_warn(c, r, "threads-started",
			   "jemalloc has started its threads (jemalloc_bg_thd): they stay when "
			   "heapmedic leaves, and `background_thread off` ends them");
	return 0;
}

static int show_threads(struct context *c, struct reply *r, const struct allocator *jemalloc,
			struct diag *d)
{
	static const char *const names[] = { "background_thread", "max_background_threads",
					     "stats.background_thread.num_threads" };
	enum { ON, MOST, RUNNING, N };
	char count[64] = "", text[192];
	struct ctl_ask ask[N] = { 0 };
	struct ctl_fresh fresh;
	int err;

	for (int i = 0; i < N; i++)
		ask[i] = (struct ctl_ask){ .name = names[i], .row = ctl_find(names[i]) };
	err = jemalloc_ask(c->process, jemalloc, ask, N, &fresh, d);
	if (!err && ask[ON].rc) {
		struct ctl_build b;

		err = jemalloc_build(c->process, jemalloc, &b, d);
		return err ? err : ctl_error(ask[ON].row, ask[ON].name, &b, false, ask[ON].rc, d);
	}
	if (err)
		return err;
	reply_set(r, "enabled", json_boolean(ask[ON].value.b));
	reply_set(r, "max", ask[MOST].rc ? json_null() : json_u64(ask[MOST].value.u));
	reply_set(r, "running", ask[RUNNING].rc ? json_null() : json_u64(ask[RUNNING].value.u));
	if (c->set.json)
		return 0;
	if (!ask[RUNNING].rc && !ask[MOST].rc)
		snprintf(count, sizeof(count), ", %" PRIu64 " running, at most %" PRIu64,
			 ask[RUNNING].value.u, ask[MOST].value.u);
	snprintf(text, sizeof(text), "background_thread %s%s%s", ask[ON].value.b ? "on" : "off",
		 count,
		 ask[ON].value.b
			 ? ""
			 : "; unused pages go back only while the program allocates and frees");
	sink_words(c->sink, INDENT, text);
	return 0;
}

int cmd_background_thread(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	int err = find_jemalloc(c, r, &jemalloc, d);

	if (err)
		return err;
	if (!a->argc)
		return show_threads(c, r, jemalloc, d);
	if (!c->set.dry_run)
		return set_threads(c, r, jemalloc, strcmp(a->argv[0], "on") == 0, d);
	reply_set(r, "dry_run", json_true());
	if (!c->set.json)
		fprintf(c->sink->out, "would write background_thread %s%s\n", a->argv[0],
			context_undone(c));
	if (c->asks && strcmp(a->argv[0], "on") == 0)
		reply_warn(c, r, "starts-threads", "%s", WHAT_IT_MEANS);
	return 0;
}
