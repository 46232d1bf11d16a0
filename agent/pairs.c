// SPDX-License-Identifier: GPL-3.0-or-later
#include "pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "array.h"

#define FIRST 1024 /* slots; a power of two */
#define MOST  ((size_t)1 << 31)

/* Once for the process. Without randomness (a system that is just booting) it is an address. */
static uint64_t seed(void)
{
	static uint64_t v;

	if (!v && getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = (uint64_t)(uintptr_t)&v;
	return v | 1;
}

uint64_t pairs_hash(uint64_t v)
{
	/* the finalizer of splitmix64, between two additions of the seed */
	v += seed();
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
	return (v ^ (v >> 31)) + seed();
}

static size_t place(const struct pairs *p, uint64_t a, uint64_t b)
{
	size_t mask = p->slots - 1, at = (size_t)pairs_hash(pairs_hash(a) ^ b) & mask;

	while (p->slot[at]) {
		const struct pair *v = &p->v[p->slot[at] - 1];

		if (v->a == a && v->b == b)
			break;
		at = (at + 1) & mask;
	}
	return at;
}

/* At most half of the slots are taken. */
static int grow_slots(struct pairs *p)
{
	size_t slots = p->slots ? p->slots * 2 : FIRST;
	uint32_t *slot;

	if (p->n * 2 < p->slots)
		return 0;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(p->slot);
	p->slot = slot;
	p->slots = slots;
	for (size_t i = 0; i < p->n; i++)
		p->slot[place(p, p->v[i].a, p->v[i].b)] = (uint32_t)i + 1;
	return 0;
}

int pairs_add(struct pairs *p, uint64_t a, uint64_t b, uint32_t *number, bool *fresh)
{
	size_t at;
	void *v;
	int err = grow_slots(p);

	if (err)
		return err;
	at = place(p, a, b);
	*fresh = !p->slot[at];
	if (!*fresh) {
		*number = p->slot[at] - 1;
		return 0;
	}
	if (p->n >= MOST)
		return -EOVERFLOW;
	v = array_room(p->v, &p->cap, p->n, sizeof(*p->v));
	if (!v)
		return -ENOMEM;
	p->v = v;
	*number = (uint32_t)p->n;
	p->v[p->n++] = (struct pair){ a, b };
	p->slot[at] = (uint32_t)p->n;
	return 0;
}

void pairs_free(struct pairs *p)
{
	free(p->v);
	free(p->slot);
	memset(p, 0, sizeof(*p));
}
