// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW	 ((size_t)64 * 1024)
#define FIRST	 ((size_t)1024) /* read where names lie far from each other */
#define NAME_END ((size_t)16 * 1024)
#define MANY	 8 /* names served by a piece: they lie close together */

/* A piece of a table's strings. */
struct window {
	char *buf;
	const struct symbol_strings *t;
	uint64_t from;
	size_t len;
	unsigned served;
};

static void window_fill(struct window *w, const struct symbol_strings *t, uint64_t off, size_t want)
{
	uint64_t left = t->str.size - off;

	w->len = left < want ? (size_t)left : want;
	w->t = t;
	w->from = off;
	w->served = 0;
	if (elf_file_pread(t->e, t->str.offset + off, w->buf, w->len))
		w->len = 0;
}

/* The string at off as far as it is in the window; *end says whether its NUL is. */
static const char *window_at(struct window *w, const struct symbol_strings *t, uint64_t off,
			     size_t *len, bool *end)
{
	const char *s, *nul;
	size_t have;

	*end = false;
	if (w->t != t || off < w->from || off - w->from >= w->len)
		return NULL;
	have = w->len - (size_t)(off - w->from);
	s = w->buf + (off - w->from);
	nul = memchr(s, 0, have);
	*end = nul != NULL;
	*len = nul ? (size_t)(nul - s) : have;
	return s;
}

/*
 * Names come in the order in which they lie, so that each byte is read about once. A string without
 * an end is read no further than a name may be long.
 */
static const char *name_at(struct window *w, const struct symbol_strings *t, uint64_t off,
			   size_t *len)
{
	const char *s;
	bool end;

	if (off >= t->str.size)
		return NULL;
	s = window_at(w, t, off, len, &end);
	if (!s || (!end && *len < NAME_END)) {
		window_fill(w, t, off, w->served > MANY ? WINDOW : FIRST);
		s = window_at(w, t, off, len, &end);
	}
	if (s && !end && *len < NAME_END) {
		window_fill(w, t, off, WINDOW);
		s = window_at(w, t, off, len, &end);
	}
	w->served++;
	return s && end && *len < NAME_END ? s : NULL;
}

static size_t base_len(const struct symbol_strings *t, const char *s, size_t len)
{
	const char *at = t->versions ? memchr(s, '@', len) : NULL;

	return at && at != s ? (size_t)(at - s) : len;
}

/* Fewer underscores in front, then shorter, then by the alphabet. */
static bool plainer(const char *a, const char *b)
{
	size_t ua = strspn(a, "_"), ub = strspn(b, "_"), la, lb;

	if (ua != ub)
		return ua < ub;
	la = strlen(a);
	lb = strlen(b);
	return la != lb ? la < lb : strcmp(a, b) < 0;
}

static int by_place(const void *a, const void *b)
{
	const struct symbol_wanted *x = a, *y = b;

	return x->name < y->name ? -1 : x->name > y->name;
}

int symbol_names_read(const struct symbol_strings *table, struct symbol_wanted *v, size_t n,
		      struct names *names, struct symbol_hit *hit)
{
	struct window w = { .buf = malloc(WINDOW) };
	const char *s;
	size_t i, len;

	if (!w.buf)
		return -ENOMEM;
	if (n)
		qsort(v, n, sizeof(*v), by_place);
	for (i = 0; i < n; i++) {
		const struct symbol_strings *t = &table[v[i].name >> 32];
		struct symbol_hit *h = &hit[v[i].hit];

		s = name_at(&w, t, (uint32_t)v[i].name, &len);
		len = s ? base_len(t, s, len) : 0;
		s = len ? names_add(names, s, len) : NULL;
		if (s && (!h->name || plainer(s, h->name)))
			h->name = s;
	}
	free(w.buf);
	return 0;
}
