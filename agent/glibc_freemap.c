// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_freemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX ((size_t)1 << 22) /* 16 TiB; 64 MiB of ours if they are all free */

static bool holds(const struct freemap *m, size_t i, uint64_t at)
{
	return i < m->blocks && at >= m->block[i].at && at - m->block[i].at < FREEMAP_BLOCK;
}

/* The first block that ends behind at. */
static size_t find(const struct freemap *m, uint64_t at)
{
	size_t lo = 0, hi = m->blocks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->block[mid].at + FREEMAP_BLOCK <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int insert(struct freemap *m, size_t i, uint64_t at, bool full)
{
	struct freemap_block new = { at & ~(FREEMAP_BLOCK - 1), NULL };

	if (m->blocks == BLOCKS_MAX)
		return -E2BIG;
	if (m->blocks == m->cap) {
		size_t want = m->cap ? m->cap * 2 : 16;
		struct freemap_block *v = reallocarray(m->block, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		m->block = v;
		m->cap = want;
	}
	if (!full) {
		new.page = calloc(FREEMAP_PAGES, sizeof(*new.page));
		if (!new.page)
			return -ENOMEM;
	}
	memmove(&m->block[i + 1], &m->block[i], (m->blocks - i) * sizeof(new));
	m->block[i] = new;
	m->blocks++;
	return 0;
}

static int add_block(struct freemap *m, uint64_t at)
{
	m->last = find(m, at);
	if (!holds(m, m->last, at))
		return insert(m, m->last, at, true);
	free(m->block[m->last].page);
	m->block[m->last].page = NULL;
	return 0;
}

/* How many of the units [from, to) of a page are among its last n. */
static unsigned of_last(unsigned from, unsigned to, unsigned n)
{
	unsigned first = FREEMAP_FULL - n;

	from = from > first ? from : first;
	return to > from ? to - from : 0;
}

static unsigned sum(unsigned a, unsigned b, unsigned most)
{
	return a + b < most ? a + b : most;
}

/* A part of one page. */
static int add_part(struct freemap *m, uint64_t at, uint64_t end)
{
	uint64_t page = at & ~(FREEMAP_PAGE - 1);
	unsigned from = (unsigned)(at - page) / FREEMAP_UNIT;
	unsigned to = (unsigned)(end - page) / FREEMAP_UNIT;
	struct freemap_page *p;
	int rc;

	if (!holds(m, m->last, at)) {
		m->last = find(m, at);
		rc = holds(m, m->last, at) ? 0 : insert(m, m->last, at, false);
		if (rc)
			return rc;
	}
	p = m->block[m->last].page;
	if (!p)
		return 0;
	p += (page - m->block[m->last].at) / FREEMAP_PAGE;
	p->free = sum(p->free, to - from, FREEMAP_FULL) & 0x1ff;
	p->tail = sum(p->tail, of_last(from, to, FREEMAP_HEAD), FREEMAP_HEAD) & 3;
	p->near = sum(p->near, of_last(from, to, m->near), m->near) & 0x1ff;
	return 0;
}

int freemap_add(struct freemap *m, uint64_t at, uint64_t size)
{
	uint64_t end = at + size;
	int rc = 0;

	while (at < end && !rc) {
		uint64_t stop = (at & ~(FREEMAP_PAGE - 1)) + FREEMAP_PAGE;

		if (at % FREEMAP_BLOCK == 0 && end - at >= FREEMAP_BLOCK) {
			stop = at + FREEMAP_BLOCK;
			rc = add_block(m, at);
		} else {
			stop = stop < end ? stop : end;
			rc = add_part(m, at, stop);
		}
		at = stop;
	}
	return rc;
}

void freemap_free(struct freemap *m)
{
	for (size_t i = 0; i < m->blocks; i++)
		free(m->block[i].page);
	free(m->block);
	*m = (struct freemap){ 0 };
}

struct freemap_page freemap_full(const struct freemap *m)
{
	return (struct freemap_page){ FREEMAP_FULL, FREEMAP_HEAD, m->near & 0x1ff };
}

struct freemap_page freemap_page(const struct freemap *m, uint64_t at, size_t *hint)
{
	const struct freemap_block *b;

	if (!holds(m, *hint, at))
		*hint = find(m, at);
	if (!holds(m, *hint, at))
		return (struct freemap_page){ 0 };
	b = &m->block[*hint];
	return b->page ? b->page[(at - b->at) / FREEMAP_PAGE] : freemap_full(m);
}
