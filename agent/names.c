// SPDX-License-Identifier: GPL-3.0-or-later
#include "names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define SLOTS_FIRST 1024U

struct slot {
	const char *s; /* NULL: free */
	uint32_t hash;
	uint32_t len;
};

struct names {
	struct pool *pool;
	struct slot *slot;
	size_t slots, used; /* slots is a power of two, at most half of them are used */
	size_t left;	    /* bytes of strings */
};

struct names *names_new(size_t max)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->pool = pool_new();
	n->slot = calloc(SLOTS_FIRST, sizeof(*n->slot));
	n->slots = SLOTS_FIRST;
	n->left = max;
	if (n->pool && n->slot)
		return n;
	names_free(n);
	return NULL;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	pool_free(n->pool);
	free(n->slot);
	free(n);
}

/* 64 bits in between, so that a file cannot easily name strings that all meet in one slot. */
static uint32_t hash_of(const char *s, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15ULL ^ len, w;

	for (; len >= sizeof(w); s += sizeof(w), len -= sizeof(w)) {
		memcpy(&w, s, sizeof(w));
		h = (h ^ w) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, s, len);
	h = (h ^ w) * 0xff51afd7ed558ccdULL;
	return (uint32_t)(h ^ h >> 29);
}

static struct slot *slot_for(struct slot *v, size_t slots, const char *s, uint32_t len,
			     uint32_t hash)
{
	size_t i = hash & (slots - 1);

	/* Half of them are free, so this ends. */
	while (v[i].s && (v[i].hash != hash || v[i].len != len || memcmp(v[i].s, s, len) != 0))
		i = (i + 1) & (slots - 1);
	return &v[i];
}

static int grow(struct names *n)
{
	size_t slots = n->slots * 2, i;
	struct slot *v = calloc(slots, sizeof(*v));

	if (!v)
		return -1;
	for (i = 0; i < n->slots; i++)
		if (n->slot[i].s)
			*slot_for(v, slots, n->slot[i].s, n->slot[i].len, n->slot[i].hash) =
				n->slot[i];
	free(n->slot);
	n->slot = v;
	n->slots = slots;
	return 0;
}

const char *names_add(struct names *n, const char *s, size_t len)
{
	uint32_t hash;
	struct slot *at;
	char *copy;

	if (len >= n->left || len > UINT32_MAX)
		return NULL;
	hash = hash_of(s, len);
	at = slot_for(n->slot, n->slots, s, (uint32_t)len, hash);
	if (at->s)
		return at->s;
	if ((n->used + 1) * 2 > n->slots) {
		if (grow(n))
			return NULL;
		at = slot_for(n->slot, n->slots, s, (uint32_t)len, hash);
	}
	copy = pool_take(n->pool, len + 1);
	if (!copy)
		return NULL;
	memcpy(copy, s, len);
	*at = (struct slot){ .s = copy, .hash = hash, .len = (uint32_t)len };
	n->used++;
	n->left -= len + 1;
	return copy;
}
