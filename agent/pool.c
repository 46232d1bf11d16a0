// SPDX-License-Identifier: GPL-3.0-or-later
#include "pool.h"

#include <stdalign.h>
#include <stdlib.h>

#define BLOCK 65536

struct block {
	struct block *next;
	size_t used, size;
	alignas(max_align_t) unsigned char bytes[];
};

struct pool {
	struct block *first; /* the one that there may be room in */
};

struct pool *pool_new(void)
{
	return calloc(1, sizeof(struct pool));
}

static struct block *add_block(struct pool *p, size_t size)
{
	struct block *b = calloc(1, sizeof(*b) + size);

	if (!b)
		return NULL;
	b->size = size;
	b->next = p->first;
	p->first = b;
	return b;
}

void *pool_take(struct pool *p, size_t size)
{
	size_t step = alignof(max_align_t), need = (size + step - 1) / step * step;
	struct block *b = p->first;
	void *at;

	if (need < size)
		return NULL;
	if (!b || need > b->size - b->used)
		b = add_block(p, need > BLOCK ? need : BLOCK);
	if (!b)
		return NULL;
	at = b->bytes + b->used;
	b->used += need;
	return at;
}

void pool_free(struct pool *p)
{
	struct block *next;

	for (struct block *b = p ? p->first : NULL; b; b = next) {
		next = b->next;
		free(b);
	}
	free(p);
}
