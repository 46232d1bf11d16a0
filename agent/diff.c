// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t delta_of(uint64_t before, uint64_t after)
{
	return (int64_t)(after - before);
}

/* Of growth: the largest first, what has shrunk most comes last. */
static int compare(int64_t x, int64_t y)
{
	return (x < y) - (x > y);
}

static uint64_t size_of(int64_t delta)
{
	return delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;
}

/* ---- owners */

static bool same_kind(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static struct diff_row *find_row(struct diff *f, const struct owner_row *row)
{
	for (size_t i = 0; i < f->rows; i++)
		if (f->row[i].owner == row->owner && same_kind(f->row[i].kind, row->kind))
			return &f->row[i];
	f->row[f->rows] = (struct diff_row){ .owner = row->owner, .kind = row->kind };
	return &f->row[f->rows++];
}

static int by_growth(const void *pa, const void *pb)
{
	const struct diff_row *a = pa, *b = pb;

	if (a->delta != b->delta)
		return compare(a->delta, b->delta);
	if (a->after != b->after)
		return a->after < b->after ? 1 : -1;
	return (a->owner > b->owner) - (a->owner < b->owner);
}

static int diff_owners(const struct snapshot *a, const struct snapshot *b, struct diff *f)
{
	const struct snapshot *side[2] = { a, b };
	struct diff_row *row;

	for (size_t k = 0; k < 2; k++) {
		int err = owners_table(&side[k]->look.memory.owners, &f->tables[k]);

		if (err)
			return err;
	}
	f->row = calloc(f->tables[0].n + f->tables[1].n + 1, sizeof(*f->row));
	if (!f->row)
		return -ENOMEM;
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < f->tables[k].n; i++) {
			const struct owner_row *r = &f->tables[k].v[i];

			row = find_row(f, r);
			row->row = r;
			*(k ? &row->after : &row->before) = r->a.resident + r->a.swap;
		}
	for (size_t i = 0; i < f->rows; i++)
		f->row[i].delta = delta_of(f->row[i].before, f->row[i].after);
	qsort(f->row, f->rows, sizeof(*f->row), by_growth);
	f->total.before = a->look.memory.usage.rss + a->look.memory.owners.total.swap;
	f->total.after = b->look.memory.usage.rss + b->look.memory.owners.total.swap;
	f->total.delta = delta_of(f->total.before, f->total.after);
	return 0;
}

/* ---- arenas */

static void measure(struct diff_arena *x)
{
	static const struct glibc_arena_plan none;
	const struct glibc_arena_plan *a = x->before ? x->before : &none;
	const struct glibc_arena_plan *b = x->after ? x->after : &none;

	x->system = delta_of(a->system_mem, b->system_mem);
	x->in_use = delta_of(a->in_use, b->in_use);
	x->free = delta_of(a->free, b->free);
	x->free_resident = delta_of(a->free_resident, b->free_resident);
}

static uint64_t change_of(const struct diff_arena *x)
{
	uint64_t most = size_of(x->system);

	if (size_of(x->in_use) > most)
		most = size_of(x->in_use);
	if (size_of(x->free) > most)
		most = size_of(x->free);
	return size_of(x->free_resident) > most ? size_of(x->free_resident) : most;
}

static int by_change(const void *pa, const void *pb)
{
	uint64_t a = change_of(pa), b = change_of(pb);

	return (a < b) - (a > b);
}

static int by_address(const void *pa, const void *pb)
{
	const struct glibc_arena_plan *const *a = pa, *const *b = pb;

	return ((*a)->at > (*b)->at) - ((*a)->at < (*b)->at);
}

/* The arenas of p by address; NULL: no memory. */
static const struct glibc_arena_plan **sorted(const struct glibc_plan *p)
{
	const struct glibc_arena_plan **v = calloc(p->arenas + 1, sizeof(void *));

	for (size_t i = 0; v && i < p->arenas; i++)
		v[i] = &p->arena[i];
	if (v)
		qsort(v, p->arenas, sizeof(void *), by_address);
	return v;
}

/* Both end in NULL. */
static void merge(const struct glibc_arena_plan **a, const struct glibc_arena_plan **b,
		  struct diff *f)
{
	while (*a || *b) {
		struct diff_arena *x = &f->arena[f->arenas++];
		bool one = *a && (!*b || (*a)->at <= (*b)->at);
		bool other = *b && (!*a || (*b)->at <= (*a)->at);

		x->before = one ? *a++ : NULL;
		x->after = other ? *b++ : NULL;
		measure(x);
	}
}

static int diff_arenas(const struct snapshot *a, const struct snapshot *b, struct diff *f)
{
	const struct glibc_plan *p = &a->look.arenas.plan, *q = &b->look.arenas.plan;
	const struct glibc_arena_plan **v, **w;

	f->glibc = a->look.glibc && b->look.glibc;
	if (!f->glibc)
		return 0;
	v = sorted(p);
	w = sorted(q);
	f->arena = calloc(p->arenas + q->arenas + 1, sizeof(*f->arena));
	if (v && w && f->arena)
		merge(v, w, f);
	free(v);
	free(w);
	if (!v || !w || !f->arena)
		return -ENOMEM;
	qsort(f->arena, f->arenas, sizeof(*f->arena), by_change);
	f->all = (struct diff_arena){ .before = &p->total, .after = &q->total };
	measure(&f->all);
	return 0;
}

/* ---- threads */

static int by_tid(const void *pa, const void *pb)
{
	const struct thread_row *const *a = pa, *const *b = pb;

	return ((*a)->t.tid > (*b)->t.tid) - ((*a)->t.tid < (*b)->t.tid);
}

static const struct thread_row **sorted_threads(const struct thread_rows *r)
{
	const struct thread_row **v = calloc(r->n + 1, sizeof(void *));

	for (size_t i = 0; v && i < r->n; i++)
		v[i] = &r->v[i];
	if (v)
		qsort(v, r->n, sizeof(void *), by_tid);
	return v;
}

/* Those of v that are not in w, both by tid and ended by NULL. */
static size_t missing(const struct thread_row **v, const struct thread_row **w, bool gone,
		      struct diff *f)
{
	size_t n = 0;

	for (; *v; v++) {
		while (*w && (*w)->t.tid < (*v)->t.tid)
			w++;
		if (*w && (*w)->t.tid == (*v)->t.tid)
			continue;
		f->thread[f->threads++] = (struct diff_thread){ .row = *v, .gone = gone };
		n++;
	}
	return n;
}

static uint64_t caches_of(const struct thread_rows *r, bool *known)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++) {
		*known &= r->v[i].g.cache;
		sum += r->v[i].g.bytes;
	}
	return sum;
}

static int diff_threads(const struct thread_rows *a, const struct thread_rows *b, struct diff *f)
{
	const struct thread_row **v = sorted_threads(a), **w = sorted_threads(b);

	f->thread = calloc(a->n + b->n + 1, sizeof(*f->thread));
	if (v && w && f->thread) {
		f->fresh = missing(w, v, false, f);
		f->gone = missing(v, w, true, f);
	}
	free(v);
	free(w);
	if (!v || !w || !f->thread)
		return -ENOMEM;
	f->caches = a->n && b->n;
	f->cache_before = caches_of(a, &f->caches);
	f->cache_after = caches_of(b, &f->caches);
	return 0;
}

/* ---- all of it */

static double seconds_of(const struct timespec *t)
{
	return (double)t->tv_sec + (double)t->tv_nsec / 1e9;
}

static void judge(const struct snapshot *a, const struct snapshot *b, struct diff *f)
{
	struct growth_sample before, after;

	f->seconds = (double)(b->time.tv_sec - a->time.tv_sec) +
		     (double)(b->time.tv_nsec - a->time.tv_nsec) / 1e9;
	growth_sample_of(&a->look.makeup, &a->look.facts, seconds_of(&a->time), &before);
	growth_sample_of(&b->look.makeup, &b->look.facts, seconds_of(&b->time), &after);
	f->growth = growth_of(&before, &after, f->text);
}

int diff_make(const struct snapshot *a, const struct snapshot *b, struct diff *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->same = snapshot_same_process(a, b);
	err = diff_owners(a, b, out);
	if (!err)
		err = diff_arenas(a, b, out);
	if (!err)
		err = diff_threads(&a->threads, &b->threads, out);
	if (err) {
		diff_free(out);
		return err;
	}
	judge(a, b, out);
	return 0;
}

void diff_free(struct diff *f)
{
	owner_table_free(&f->tables[0]);
	owner_table_free(&f->tables[1]);
	free(f->row);
	free(f->arena);
	free(f->thread);
	memset(f, 0, sizeof(*f));
}
