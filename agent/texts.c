// SPDX-License-Identifier: GPL-3.0-or-later
#include "texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

#define FIRST 1024 /* slots; a power of two */
#define MOST  ((size_t)1 << 31)

static uint64_t hash(const char *text)
{
	uint64_t h = pairs_hash(0), word;
	size_t left = strlen(text), n;

	for (; left; text += n, left -= n) {
		n = left < sizeof(word) ? left : sizeof(word);
		word = 0;
		memcpy(&word, text, n);
		h = pairs_hash(h ^ word);
	}
	return h;
}

static size_t place(const struct texts *s, const char *text)
{
	size_t mask = s->slots - 1, at = (size_t)hash(text) & mask;

	while (s->slot[at] && strcmp(s->v[s->slot[at] - 1], text) != 0)
		at = (at + 1) & mask;
	return at;
}

/* At most half of the slots are taken. */
static int grow_slots(struct texts *s)
{
	size_t slots = s->slots ? s->slots * 2 : FIRST;
	uint32_t *slot;

	if (s->n * 2 < s->slots)
		return 0;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(s->slot);
	s->slot = slot;
	s->slots = slots;
	for (size_t i = 0; i < s->n; i++)
		s->slot[place(s, s->v[i])] = (uint32_t)i + 1;
	return 0;
}

int texts_add(struct texts *s, const char *text, uint32_t *number)
{
	size_t len = strlen(text), at;
	char *copy;
	void *v;
	int err = grow_slots(s);

	if (err)
		return err;
	at = place(s, text);
	if (s->slot[at]) {
		*number = s->slot[at] - 1;
		return 0;
	}
	if (s->n >= MOST)
		return -EOVERFLOW;
	copy = pool_take(s->pool, len + 1);
	v = array_room(s->v, &s->cap, s->n, sizeof(*s->v));
	if (!copy || !v)
		return -ENOMEM;
	s->v = v;
	memcpy(copy, text, len + 1);
	*number = (uint32_t)s->n;
	s->v[s->n++] = copy;
	s->slot[at] = (uint32_t)s->n;
	return 0;
}

void texts_free(struct texts *s)
{
	free(s->v);
	free(s->slot);
	*s = (struct texts){ .pool = NULL };
}
