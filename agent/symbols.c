// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols_private.h"

/* Of names and paths of source files, over all files. */
#define NAMES_MAX ((size_t)256 << 20)

static int by_start(const void *a, const void *b)
{
	const struct symbol_map *x = ((const struct symbols_map *)a)->map,
				*y = ((const struct symbols_map *)b)->map;

	return x->start < y->start ? -1 : x->start > y->start;
}

int symbols_new(const struct symbol_map *maps, size_t n, symbol_open_fn open, void *arg,
		struct symbols **out, struct diag *d)
{
	struct symbols *s = calloc(1, sizeof(*s));
	size_t i;

	if (!s)
		return diag_internal(d, -ENOMEM, "preparing to look up symbols");
	s->open = open;
	s->arg = arg;
	s->maps = maps;
	s->names = names_new(NAMES_MAX);
	s->map = calloc(n + 1, sizeof(*s->map));
	s->of = calloc(n + 1, sizeof(*s->of));
	if (!s->names || !s->map || !s->of) {
		symbols_free(s);
		return diag_internal(d, -ENOMEM, "preparing to look up symbols");
	}
	for (i = 0; i < n; i++)
		s->map[i].map = &maps[i];
	s->n = n;
	if (n)
		qsort(s->map, n, sizeof(*s->map), by_start);
	for (i = 0; i < n; i++)
		s->of[s->map[i].map - maps] = (uint32_t)i;
	*out = s;
	return 0;
}

void symbols_skip_places(struct symbols *s)
{
	s->no_places = true;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	names_free(s->names);
	free(s->map);
	free(s->of);
	free(s->place);
	free(s->frame);
	free(s);
}

/* The map that holds pc; s->n if none. */
static size_t map_at(const struct symbols *s, uint64_t pc)
{
	size_t lo = 0, hi = s->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (s->map[mid].map->start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && pc < s->map[lo - 1].map->end ? lo - 1 : s->n;
}

static struct symbols_place *place_of(const struct symbols *s, uint64_t pc)
{
	size_t lo = 0, hi = s->places, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (s->place[mid].pc == pc)
			return &s->place[mid];
		if (s->place[mid].pc < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static int by_pc(const void *a, const void *b)
{
	const struct symbols_place *x = a, *y = b;

	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Those of pcs that are not known yet, each once and ascending; *n of them. */
static uint64_t *new_pcs(const struct symbols *s, const uint64_t *pcs, size_t count, size_t *n)
{
	uint64_t *v = malloc((count + 1) * sizeof(*v));
	size_t i, k = 0;

	*n = 0;
	if (!v)
		return NULL;
	for (i = 0; i < count; i++)
		if (!s->places || !place_of(s, pcs[i]))
			v[k++] = pcs[i];
	if (k)
		qsort(v, k, sizeof(*v), by_number);
	for (i = 0; i < k; i++)
		if (!i || v[i] != v[i - 1])
			v[(*n)++] = v[i];
	return v;
}

/* Each in a place of its own behind those that are there; those of one map lie together. */
static int add_places(struct symbols *s, const uint64_t *pc, size_t n)
{
	struct symbols_place *v = realloc(s->place, (s->places + n + 1) * sizeof(*v));
	size_t i, m;

	if (!v)
		return -ENOMEM;
	s->place = v;
	for (i = 0; i < s->n; i++)
		s->map[i].first = s->map[i].count = 0;
	for (i = 0; i < n; i++) {
		v[s->places + i] = (struct symbols_place){ .pc = pc[i] };
		m = map_at(s, pc[i]);
		if (m < s->n && !s->map[m].count++)
			s->map[m].first = s->places + i;
	}
	return 0;
}

int symbols_prepare(struct symbols *s, const uint64_t *pcs, size_t n, struct diag *d)
{
	uint64_t *pc;
	size_t count;
	int err;

	pc = new_pcs(s, pcs, n, &count);
	err = pc ? add_places(s, pc, count) : -ENOMEM;
	if (!err && count) {
		err = symbols_resolve(s);
		/* also after an error: what is known stays in order */
		s->places += count;
		qsort(s->place, s->places, sizeof(*s->place), by_pc);
	}
	free(pc);
	return err ? diag_internal(d, err, "looking up symbols") : 0;
}

size_t symbols_find(struct symbols *s, uint64_t pc, struct symbol_frame *out, size_t max)
{
	const struct symbols_place *p = place_of(s, pc);
	size_t n;

	if (!p) {
		if (symbols_prepare(s, &pc, 1, NULL))
			return 0;
		p = place_of(s, pc);
	}
	n = p ? p->frames : 0;
	if (n > max)
		n = max;
	if (n)
		memcpy(out, &s->frame[p->first], n * sizeof(*out));
	return n;
}

const char *symbols_build_id(struct symbols *s, size_t map)
{
	struct symbols_map *m = &s->map[s->of[map]];

	if (m->state == SYMBOLS_UNASKED && !m->looked)
		symbols_look(s, m);
	return m->build_id;
}

bool symbols_other_inode(const struct symbols *s, size_t map)
{
	return s->map[s->of[map]].other_inode;
}

enum symbols_state symbols_state(const struct symbols *s, size_t map, int *error)
{
	const struct symbols_map *m = &s->map[s->of[map]];

	if (error)
		*error = m->error;
	return m->state;
}

const char *symbols_state_text(enum symbols_state state)
{
	static const char *const text[] = {
		[SYMBOLS_UNASKED] = "not looked at",
		[SYMBOLS_NO_FILE] = "is no file",
		[SYMBOLS_GONE] = "cannot be opened",
		[SYMBOLS_CHANGED] = "is another file now than the one that was mapped",
		[SYMBOLS_BAD] = "is no sound x86-64 ELF file",
		[SYMBOLS_NONE] = "has no symbols, and there is no debug file for it",
		[SYMBOLS_MEMORY] = "is not to be had any more: only exported symbols, from memory",
		[SYMBOLS_EXPORTED] = "has only exported symbols",
		[SYMBOLS_NAMES] = "has all symbols, but no line numbers",
		[SYMBOLS_DAMAGED] = "has debug information that cannot be read to its end",
		[SYMBOLS_LINES] = "has debug information",
	};

	return (size_t)state < sizeof(text) / sizeof(text[0]) ? text[state] : "";
}
