// SPDX-License-Identifier: GPL-3.0-or-later
#include "codemap.h"

#include <errno.h>
#include <stdlib.h>

#include "codemap_private.h"

#define FORBID ((unsigned)(CODE_ALLOC | CODE_LOADER | CODE_THREADS | CODE_STDIO))

static const struct span *find_span(const struct code_map *c, uint64_t addr)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (addr - c->v[i].lo < c->v[i].hi - c->v[i].lo)
			return &c->v[i];
	return NULL;
}

static unsigned kind_in(const struct code_map *c, const struct span *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n, mid, i;
	unsigned kind;

	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (addr < s->cut[mid])
			hi = mid;
		else
			lo = mid;
	}
	kind = s->kind[lo];
	if (kind & CODE_LIBC && code_text_after_syscall(&s->text, addr))
		kind |= CODE_WRAPPER;
	if (!(kind & FORBID))
		return kind;
	for (i = 0; i < c->n_exempt; i++)
		if (addr >= c->exempt[i].lo && addr < c->exempt[i].hi)
			return kind & ~FORBID;
	return kind;
}

unsigned code_map_kind(const struct code_map *c, uint64_t addr)
{
	const struct span *s;

	if (addr - c->lo >= c->hi - c->lo)
		return 0;
	s = find_span(c, addr);
	return s ? kind_in(c, s, addr) : 0;
}

unsigned code_map_return(const struct code_map *c, uint64_t addr)
{
	const struct span *s;
	unsigned kind;

	if (addr - c->lo >= c->hi - c->lo)
		return 0;
	s = find_span(c, addr);
	kind = s ? kind_in(c, s, addr) : 0;
	if (!kind || kind & CODE_SIGNAL || code_text_after_call(&s->text, addr))
		return kind;
	return 0;
}

void code_map_span(const struct code_map *c, uint64_t *lo, uint64_t *hi)
{
	*lo = c->lo;
	*hi = c->hi;
}

int code_map_exempt(struct code_map *c, uint64_t lo, uint64_t hi)
{
	if (c->n_exempt == CODE_EXEMPT_MAX)
		return -ENOSPC;
	c->exempt[c->n_exempt++] = (struct range){ .lo = lo, .hi = hi };
	return 0;
}

void code_map_free(struct code_map *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < c->n; i++) {
		free(c->v[i].cut);
		free(c->v[i].kind);
		code_text_free(&c->v[i].text);
	}
	free(c);
}
