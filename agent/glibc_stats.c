// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_stats.h"

#include <errno.h>
#include <string.h>

#define WRAP (1ULL << 32)

/* What the lines of one block said. */
struct block {
	struct info_arena a;
	bool has_system, has_in_use;
};

struct stats {
	struct glibc_info *out;
	struct block arena, total;
	struct block *now; /* the block that lines belong to, NULL before the first */
	uint64_t max_mmapped;
	bool has_max_mmapped;
};

static const char *find(const char *s, const char *end, const char *what)
{
	return memmem(s, (size_t)(end - s), what, strlen(what));
}

/* Digits at s, blanks before them allowed. */
static bool number(const char *s, const char *end, uint64_t *out)
{
	bool any = false;

	*out = 0;
	while (s < end && *s == ' ')
		s++;
	for (; s < end && *s >= '0' && *s <= '9'; s++) {
		if (__builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(*s - '0'), out))
			return false;
		any = true;
	}
	return any;
}

/* The number after "KEY =" in a line. */
static bool value(const char *s, const char *end, const char *key, uint64_t *out)
{
	const char *at = find(s, end, key);

	if (!at)
		return false;
	at += strlen(key);
	while (at < end && *at == ' ')
		at++;
	return at < end && *at == '=' && number(at + 1, end, out);
}

/* The arena's lines are complete: take it. */
static int flush(struct stats *st)
{
	struct info_arena *a = &st->arena.a;

	if (!st->arena.has_system)
		return 0;
	if (!st->arena.has_in_use) {
		st->out->total.flags |= INFO_CUT;
		return 0;
	}
	if (a->in_use > a->system)
		a->flags |= INFO_WRAPPED;
	else
		a->free = a->system - a->in_use;
	return glibc_info_add(st->out, a);
}

static int line_read(struct stats *st, const char *s, const char *end)
{
	const char *at = find(s, end, "Arena ");
	uint64_t v;

	if (at && number(at + 6, end, &v) && v <= UINT32_MAX) {
		int rc = flush(st);

		st->arena = (struct block){ .a.index = (unsigned)v };
		st->now = &st->arena;
		return rc;
	}
	if (find(s, end, "Total (incl. mmap):")) {
		int rc = flush(st);

		st->arena = (struct block){ 0 };
		st->now = &st->total;
		return rc;
	}
	if (value(s, end, "max mmap bytes", &v)) {
		st->max_mmapped = v;
		st->has_max_mmapped = true;
	}
	if (!st->now)
		return 0;
	if (!st->now->has_system && value(s, end, "system bytes", &v)) {
		st->now->a.system = v;
		st->now->has_system = true;
	} else if (!st->now->has_in_use && value(s, end, "in use bytes", &v)) {
		st->now->a.in_use = v;
		st->now->has_in_use = true;
	}
	return 0;
}

/*
 * malloc_stats starts both totals with the mmapped bytes and adds each arena, modulo 2^32 in the
 * same way, so both differ from the sums of the printed arenas by the mmapped bytes modulo 2^32.
 */
static void total_undo(struct stats *st)
{
	struct glibc_info *o = st->out;
	uint64_t rest = (st->total.a.system - o->total.system) % WRAP;
	uint64_t rest_in_use = (st->total.a.in_use - o->total.in_use) % WRAP;

	for (size_t i = 0; i < o->arenas; i++)
		o->total.flags |= o->arena[i].flags & INFO_WRAPPED;
	o->has_total = true;
	if (rest != rest_in_use || (st->has_max_mmapped && rest > st->max_mmapped)) {
		o->total.flags |= INFO_TOTAL_DIFFERS;
		return;
	}
	o->mmapped = rest;
	if (o->total.system + rest != st->total.a.system ||
	    o->total.in_use + rest != st->total.a.in_use)
		o->total.flags |= INFO_WRAPPED;
	if (!st->has_max_mmapped)
		o->total.flags |= INFO_CUT;
	else if (st->max_mmapped >= WRAP + rest)
		o->total.flags |= INFO_WRAPPED;
}

int glibc_stats_parse(const char *text, size_t len, struct glibc_info *out)
{
	struct stats st = { .out = out };
	const char *end = text + len;
	int rc = 0;

	*out = (struct glibc_info){ 0 };
	for (const char *s = text; s < end && !rc;) {
		const char *eol = memchr(s, '\n', (size_t)(end - s));

		if (!eol)
			eol = end;
		rc = line_read(&st, s, eol);
		s = eol < end ? eol + 1 : end;
	}
	if (!rc)
		rc = flush(&st);
	if (rc == -E2BIG)
		out->total.flags |= INFO_CUT;
	else if (rc < 0)
		goto out_free;
	rc = -ENOENT;
	if (!out->arenas)
		goto out_free;
	glibc_info_sum(out);
	if (st.total.has_system && st.total.has_in_use)
		total_undo(&st);
	else
		out->total.flags |= INFO_CUT;
	return 0;
out_free:
	glibc_info_free(out);
	return rc;
}
