// SPDX-License-Identifier: GPL-3.0-or-later
#include "makeup.h"

#include <string.h>

void makeup_parts_init(struct makeup_parts *p)
{
	*p = (struct makeup_parts){ .limit = UINT64_MAX, .room = UINT64_MAX };
}

void makeup_count(const struct owners *o, uint64_t resident[OWNERS])
{
	memset(resident, 0, OWNERS * sizeof(*resident));
	for (size_t i = 0; i < o->n; i++)
		resident[o->v[i].owner] += o->v[i].a.resident;
}

/* As much of want as there is left. */
static uint64_t take(uint64_t *left, uint64_t want)
{
	uint64_t got = want < *left ? want : *left;

	*left -= got;
	return got;
}

static void fill_glibc(const struct makeup_parts *p, struct makeup *m)
{
	uint64_t heap = p->resident[OWNER_GLIBC_MAIN] + p->resident[OWNER_GLIBC_ARENA];

	/* a block with a mapping of its own is given back when it is freed */
	m->live += p->resident[OWNER_GLIBC_MMAPPED];
	if (!p->glibc) {
		m->unasked += heap;
		return;
	}
	m->retained += take(&heap, p->trimmable);
	m->locked += take(&heap, p->pinned);
	m->fragmented += take(&heap, p->stranded);
	m->fragmented += take(&heap, p->top);
	m->live += heap;
}

static void fill_jemalloc(const struct makeup_parts *p, struct makeup *m)
{
	uint64_t own = p->resident[OWNER_JEMALLOC];

	if (own == 0 && p->jemalloc)
		own = take(&m->other, p->jemalloc_asked ? p->estimate : m->other);
	/* that is known without statistics, too */
	m->retained += take(&own, p->purgeable);
	if (!p->jemalloc_asked) {
		m->unasked += own;
		return;
	}
	m->fragmented += take(&own, p->active > p->allocated ? p->active - p->allocated : 0);
	m->live += own;
}

static void fill_tcmalloc(const struct makeup_parts *p, struct makeup *m)
{
	uint64_t own = p->resident[OWNER_TCMALLOC];

	if (own == 0 && p->tcmalloc)
		own = take(&m->other, p->tcmalloc_asked ? p->tcmalloc_heap : m->other);
	if (!p->tcmalloc_asked) {
		m->unasked += own;
		return;
	}
	m->retained += take(&own, p->tcmalloc_free);
	m->fragmented += take(&own, p->tcmalloc_cached);
	m->live += own;
}

void makeup_fill(const struct makeup_parts *p, struct makeup *out)
{
	const uint64_t *r = p->resident;

	*out = (struct makeup){ .rss = p->rss, .limit = p->limit, .room = p->room };
	out->go = r[OWNER_GO_HEAP] + r[OWNER_GO_RUNTIME];
	out->jvm = r[OWNER_JVM];
	out->stacks = r[OWNER_THREAD_STACK] + r[OWNER_MAIN_STACK];
	out->files = r[OWNER_FILE_TEXT] + r[OWNER_FILE_DATA] + r[OWNER_VDSO];
	out->shm = r[OWNER_SHM];
	out->untold = r[OWNER_MIMALLOC] + r[OWNER_MUSL];
	out->other = r[OWNER_UNCLAIMED];
	fill_glibc(p, out);
	fill_jemalloc(p, out);
	fill_tcmalloc(p, out);
	/* no allocator's in any case */
	out->other += r[OWNER_FILE_PRIVATE] + r[OWNER_NAMED];
}
