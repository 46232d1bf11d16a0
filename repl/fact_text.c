// SPDX-License-Identifier: GPL-3.0-or-later
#include "fact_text.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "nearest.h"

#define NS ((uint64_t)1000000000)

static const char *bytes_text(uint64_t n, bool raw, char *buf, size_t size)
{
	char text[SIZE_TEXT];

	/* a threshold of -1: never */
	snprintf(buf, size, "%s", n == UINT64_MAX ? "off" : text_size(text, n, raw));
	return buf;
}

const char *fact_text(const struct facts *f, enum fact_id id, bool raw, char *buf, size_t size)
{
	const struct fact *v = &f->v[id];
	char text[SIZE_TEXT];

	switch (fact_info(id)->kind) {
	case KIND_BYTES:
		return bytes_text(v->n, raw, buf, size);
	case KIND_SECONDS:
		if (raw || v->n > UINT64_MAX / NS)
			snprintf(buf, size, "%" PRIu64, v->n);
		else if (v->n == 0) /* it is counted in whole seconds */
			snprintf(buf, size, "0 s");
		else
			snprintf(buf, size, "%s", time_format(v->n * NS, text));
		break;
	case KIND_FRACTION:
		snprintf(buf, size, "%.3f", v->fraction);
		break;
	case KIND_BOOL:
		snprintf(buf, size, "%s", v->n ? "true" : "false");
		break;
	case KIND_TEXT:
		snprintf(buf, size, "%s", v->text);
		break;
	case KIND_COUNT:
	case KIND_COUNTER:
		snprintf(buf, size, "%" PRIu64, v->n);
		break;
	}
	return buf;
}

/* The part of a name before its dot. */
static bool is_of(enum fact_id id, const char *part)
{
	size_t n = strlen(part);
	const char *name = fact_info(id)->name;

	return strncmp(name, part, n) == 0 && name[n] == '.';
}

static const char *asked_missing(const struct look_asked *asked, const char *unused,
				 const char *uncounted)
{
	if (!asked->a)
		return unused;
	return asked->unasked[0] ? asked->unasked : uncounted;
}

const char *fact_missing(const struct look *l, enum fact_id id)
{
	if (is_of(id, "glibc") && l->glibc_unread.exit)
		return l->glibc_unread.text;
	if (is_of(id, "glibc") && !l->glibc)
		return "glibc's malloc is not in use";
	/* the sum of all of them is known, or none is */
	if (id == FACT_GLIBC_TCACHE)
		return "the cache of a thread could not be read (`threads`)";
	if (is_of(id, "glibc"))
		return "it was not found in this glibc";
	if (is_of(id, "jemalloc") && !l->jemalloc)
		return "jemalloc is not in use";
	if (is_of(id, "jemalloc"))
		return l->jemalloc_unasked[0] ? l->jemalloc_unasked : "this jemalloc has no such";
	if (is_of(id, "tcmalloc"))
		return asked_missing(&l->tcmalloc, "tcmalloc is not in use",
				     "this tcmalloc does not count it");
	if (is_of(id, "mimalloc"))
		return asked_missing(&l->mimalloc, "mimalloc is not in use",
				     "this mimalloc does not tell it");
	if (is_of(id, "go"))
		return "it is no Go program";
	if (is_of(id, "cgroup"))
		return l->cgroup.version ? "its cgroup has no limit" : "no cgroup was found";
	return "it could not be read";
}

static const char *next_fact(size_t i, const void *arg)
{
	(void)arg;
	return i < FACT_COUNT ? fact_info((enum fact_id)i)->name : NULL;
}

#define NEAR_MAX 3

/* Those that the word is a part of ("trimmable"), else the one that is most like it. */
static void near_facts(const char *name, char *buf, size_t size)
{
	const char *near = nearest(name, next_fact, NULL);
	size_t used = 0, n = 0;

	snprintf(buf, size, "%s", near ? near : "");
	for (unsigned i = 0; i < FACT_COUNT && n < NEAR_MAX && strlen(name) > 2; i++) {
		const char *one = fact_info((enum fact_id)i)->name;

		if (is_of((enum fact_id)i, name)) {
			snprintf(buf, size, "%s. for all of it", name);
			return;
		}
		if (!strstr(one, name) || used + strlen(one) + 3 > size)
			continue;
		used += (size_t)snprintf(buf + used, size - used, "%s%s", n++ ? ", " : "", one);
	}
}

int fact_unknown(const char *name, struct diag *d)
{
	char near[120], hint[160];

	near_facts(name, near, sizeof(near));
	if (near[0])
		snprintf(hint, sizeof(hint), "did you mean %s? `facts` lists them", near);
	else
		snprintf(hint, sizeof(hint), "`facts` lists them");
	return diag_fail(d, -EINVAL, HM_USAGE, "unknown-fact", hint, "no fact is named '%.60s'",
			 name);
}

static json_t *fact_json(const struct fact *v, enum fact_kind kind)
{
	if (!v->known)
		return json_null();
	if (kind == KIND_FRACTION)
		return json_real(v->fraction);
	if (kind == KIND_BOOL)
		return json_boolean(v->n);
	return kind == KIND_TEXT ? json_string(v->text) : json_u64(v->n);
}

json_t *facts_json(struct reply *r, const struct facts *f)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < FACT_COUNT; i++)
		reply_member(r, o, fact_info((enum fact_id)i)->name,
			     fact_json(&f->v[i], fact_info((enum fact_id)i)->kind));
	return o;
}

json_t *fact_origins_json(struct reply *r, const struct facts *f)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < FACT_COUNT; i++)
		if (f->v[i].known)
			reply_member(r, o, fact_info((enum fact_id)i)->name,
				     json_string(origin_name(f->v[i].origin)));
	return o;
}

void look_warn(struct context *c, struct reply *r, const struct look *l, bool asking)
{
	const struct glibc_plan *plan = &l->arenas.plan;
	const struct glibc_arena_plan *t = &plan->total;
	char where[128], what[160];

	if (l->glibc_unread.exit)
		reply_warn(c, r, "heap-not-read", "%s", l->glibc_unread.text);
	if (asking && facts_known(&l->facts, FACT_JEMALLOC_PURGEABLE) && l->jemalloc_unasked[0])
		reply_warn(c, r, "no-statistics", "%s", l->jemalloc_unasked);
	else if (asking && l->jemalloc_unasked[0])
		reply_warn(c, r, "not-asked", "jemalloc was not asked: %s", l->jemalloc_unasked);
	if (asking && l->tcmalloc.unasked[0])
		reply_warn(c, r, "not-asked", "tcmalloc was not asked: %s", l->tcmalloc.unasked);
	if (asking && l->mimalloc.unasked[0])
		reply_warn(c, r, "not-asked", "mimalloc was not asked: %s", l->mimalloc.unasked);
	if (plan->ring_fault.kind)
		reply_warn(c, r, "damaged-heap", "the list of arenas is damaged: %s: %s",
			   glibc_fault_where(&plan->ring_fault, where, sizeof(where)),
			   glibc_fault_text(&plan->ring_fault, what, sizeof(what)));
	for (size_t i = 0; i < plan->arenas; i++)
		if (plan->arena[i].fault.kind) {
			reply_warn(c, r, "damaged-heap", "arena %u is damaged: %s: %s",
				   plan->arena[i].index,
				   glibc_fault_where(&plan->arena[i].fault, where, sizeof(where)),
				   glibc_fault_text(&plan->arena[i].fault, what, sizeof(what)));
			break;
		}
	if (t->moving)
		reply_warn(c, r, "moving",
			   "the heap changed while it was read: glibc's numbers are "
			   "near");
	if (t->cut || t->swapped_out)
		reply_warn(
			c, r, "partial",
			"a part of the heap could not be read%s: glibc's numbers are at least so "
			"much",
			t->swapped_out ? " (it is swapped out)" : "");
	if (l->memory.owners.estimated)
		reply_warn(c, r, "divided-by-length",
			   "%zu mappings with more than one owner were divided by length: their "
			   "pages could not be counted",
			   l->memory.owners.estimated);
	if (l->memory.smaps.torn)
		reply_warn(c, r, "torn-read",
			   "mappings changed while they were read: what does not "
			   "fit stands in the remainder");
}
