// SPDX-License-Identifier: GPL-3.0-or-later
#include "owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "owners_kind.h"

#define PAGE 4096ULL

const char *owner_name(enum owner o)
{
	static const char *const names[OWNERS] = {
		[OWNER_GLIBC_MAIN] = "glibc-main",
		[OWNER_GLIBC_ARENA] = "glibc-arena",
		[OWNER_GLIBC_MMAPPED] = "glibc-mmapped",
		[OWNER_JEMALLOC] = "jemalloc",
		[OWNER_TCMALLOC] = "tcmalloc",
		[OWNER_MIMALLOC] = "mimalloc",
		[OWNER_MUSL] = "musl",
		[OWNER_GO_HEAP] = "go-heap",
		[OWNER_GO_RUNTIME] = "go-runtime",
		[OWNER_JVM] = "jvm",
		[OWNER_THREAD_STACK] = "thread-stack",
		[OWNER_MAIN_STACK] = "main-stack",
		[OWNER_FILE_TEXT] = "file-text",
		[OWNER_FILE_DATA] = "file-data",
		[OWNER_FILE_PRIVATE] = "file-private",
		[OWNER_SHM] = "shm",
		[OWNER_VDSO] = "vdso",
		[OWNER_NAMED] = "named",
		[OWNER_UNCLAIMED] = "unclaimed",
	};

	return (unsigned)o < OWNERS ? names[o] : "";
}

const char *basis_name(enum basis b)
{
	static const char *const names[] = { "kernel", "read", "shape", "rest" };

	return (unsigned)b < sizeof(names) / sizeof(names[0]) ? names[b] : "";
}

/* ---- facts */

void owner_facts_init(struct owner_facts *f)
{
	memset(f, 0, sizeof(*f));
	f->brk = OWNER_NAMED;
	f->rest = OWNER_UNCLAIMED;
	f->reserver = OWNER_UNCLAIMED;
}

void owner_facts_free(struct owner_facts *f)
{
	for (size_t i = 0; i < CLAIM_CLASSES; i++)
		free(f->claims[i].v);
	owner_facts_init(f);
}

int owner_claim(struct owner_facts *f, enum claim_class class, const struct claim *c)
{
	struct claims *list = &f->claims[class];
	struct claim *put;

	if (c->start >= c->end || c->end > UINT64_MAX - PAGE)
		return -EINVAL;
	if (list->n == list->cap) {
		size_t want = list->cap ? list->cap * 2 : 64;
		struct claim *v = reallocarray(list->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		list->v = v;
		list->cap = want;
	}
	put = &list->v[list->n++];
	*put = *c;
	put->start &= ~(PAGE - 1);
	put->end = (c->end + PAGE - 1) & ~(PAGE - 1);
	return 0;
}

static int by_start(const void *pa, const void *pb)
{
	const struct claim *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a->id < b->id) - (a->id > b->id);
}

/* By address and without overlap: the one that begins first keeps what two claim, of equals the one
 * that knows more. */
static void claims_settle(struct claims *list)
{
	uint64_t end = 0;
	size_t used = 0;

	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), by_start);
	for (size_t i = 0; i < list->n; i++) {
		struct claim c = list->v[i];

		if (c.start < end)
			c.start = end;
		if (c.start >= c.end)
			continue;
		end = c.end;
		list->v[used++] = c;
	}
	list->n = used;
}

/* ---- dividing */

/* Counting takes 8 bytes for each page, and a target may reserve all addresses that there are: 2
 * GiB are read at most. */
#define COUNTABLE ((uint64_t)1 << 40)

struct divider {
	const struct owner_facts *f;
	struct owners *out;
	size_t at[CLAIM_CLASSES]; /* claims before these end below the current address */
	const struct claim *last; /* of the piece before */
	struct owner_run go;	  /* the run of mappings that began at an address of Go's */
	uint64_t countable;	  /* bytes of address space whose pages may still be counted */
};

static struct piece *put_piece(struct owners *out, const struct piece *p)
{
	if (out->n == out->cap) {
		size_t want = out->cap ? out->cap * 2 : 256;
		struct piece *v = reallocarray(out->v, want, sizeof(*v));

		if (!v)
			return NULL;
		out->v = v;
		out->cap = want;
	}
	out->v[out->n] = *p;
	return &out->v[out->n++];
}

/*
 * The claim that holds addr, or NULL; *end is lowered to where that answer ends. Addresses only
 * grow from call to call.
 */
static const struct claim *claim_at(struct divider *d, uint64_t addr, uint64_t *end)
{
	for (size_t k = 0; k < CLAIM_CLASSES; k++) {
		const struct claims *list = &d->f->claims[k];
		size_t *i = &d->at[k];
		const struct claim *c;

		while (*i < list->n && list->v[*i].end <= addr)
			(*i)++;
		if (*i == list->n)
			continue;
		c = &list->v[*i];
		if (c->start > addr) {
			if (c->start < *end)
				*end = c->start;
			continue;
		}
		if (c->end < *end)
			*end = c->end;
		return c;
	}
	return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* part of whole, of something of which there is v; exact for part == whole. */
static uint64_t share(uint64_t v, uint64_t part, uint64_t whole)
{
	uint64_t s;

	if (whole == 0)
		return 0;
	s = (uint64_t)((unsigned __int128)v * part / whole);
	return part == whole ? v : s & ~(PAGE - 1);
}

/* Takes the share of piece p, of which left is what nobody has taken yet. */
static void take_share(const struct amounts *all, struct amounts *left, struct piece *p)
{
	const uint64_t part = p->a.resident, whole = all->resident;

	p->a.huge = least(share(all->huge, part, whole), left->huge);
	p->a.lazyfree = least(share(all->lazyfree, part, whole), left->lazyfree);
	p->a.locked = least(share(all->locked, part, whole), left->locked);
	left->huge -= p->a.huge;
	left->lazyfree -= p->a.lazyfree;
	left->locked -= p->a.locked;
}

static void add_amounts(struct amounts *to, const struct amounts *a)
{
	to->mapped += a->mapped;
	to->resident += a->resident;
	to->swap += a->swap;
	to->huge += a->huge;
	to->lazyfree += a->lazyfree;
	to->locked += a->locked;
	to->hugetlb += a->hugetlb;
}

static struct amounts row_amounts(const struct smaps_row *row)
{
	return (struct amounts){
		.mapped = row->map.end - row->map.start,
		.resident = row->rss,
		.swap = row->swap,
		.huge = row->anon_huge + row->shmem_huge + row->file_huge,
		.lazyfree = row->lazyfree,
		.locked = row->locked,
		.hugetlb = row->shared_hugetlb + row->private_hugetlb,
	};
}

/* What counting found for the pieces, made to fit the mapping's own figure. */
static void fit(struct piece *p, size_t n, uint64_t total, size_t field)
{
	uint64_t left = total;

	for (size_t i = 0; i < n; i++) {
		uint64_t *v = (uint64_t *)((char *)&p[i].a + field);

		*v = least(*v, left);
		left -= *v;
	}
	/* pages that have come since: where there is room, from the end, where heaps grow */
	for (size_t i = n; left && i-- > 0;) {
		uint64_t *v = (uint64_t *)((char *)&p[i].a + field);
		uint64_t room = i == 0 ? left : p[i].a.mapped - least(*v, p[i].a.mapped);

		room = least(room, left);
		*v += room;
		left -= room;
	}
}

/* The pieces from first on are those of row. */
static void divide(struct divider *d, const struct smaps_row *row, size_t first)
{
	struct piece *p = d->out->v + first;
	size_t n = d->out->n - first;
	struct amounts all = row_amounts(row), left = all;
	bool counted = d->f->count && (all.resident || all.swap) && all.mapped <= d->countable;

	if (n == 1) {
		p->a = all;
		return;
	}
	if (counted)
		d->countable -= all.mapped;
	for (size_t i = 0; i < n; i++) {
		p[i].a.mapped = p[i].end - p[i].start;
		if (counted && d->f->count(d->f->count_ctx, p[i].start, p[i].end, &p[i].a.resident,
					   &p[i].a.swap))
			counted = false;
	}
	if (!counted && (all.resident || all.swap)) {
		d->out->estimated++;
		for (size_t i = 0; i < n; i++) {
			p[i].a.resident = share(all.resident, p[i].a.mapped, all.mapped);
			p[i].a.swap = share(all.swap, p[i].a.mapped, all.mapped);
		}
	}
	fit(p, n, all.resident, offsetof(struct amounts, resident));
	fit(p, n, all.swap, offsetof(struct amounts, swap));
	for (size_t i = 0; i < n; i++)
		take_share(&all, &left, &p[i]);
	p[n - 1].a.huge += left.huge;
	p[n - 1].a.lazyfree += left.lazyfree;
	p[n - 1].a.locked += left.locked;
	p[n - 1].a.hugetlb = all.hugetlb;
}

/* Anonymous memory: by claims, the rest by what the mapping says of itself. */
static int assign_anon(struct divider *d, const struct smaps_row *row, const struct piece *self)
{
	size_t first = d->out->n;
	uint64_t at = row->map.start;

	do {
		struct piece p = *self;
		uint64_t end = row->map.end;
		const struct claim *c = claim_at(d, at, &end);

		p.start = at;
		p.end = end;
		if (c) {
			p.owner = c->owner;
			p.basis = c->basis;
			p.kind = c->kind;
			p.id = c->id;
		}
		p.continues = c && c == d->last;
		d->last = c;
		if (!put_piece(d->out, &p))
			return -ENOMEM;
		at = end;
	} while (at < row->map.end);
	divide(d, row, first);
	return 0;
}

/* A mapping of a file: its own pages, and the private copies of those that were written. */
static int assign_file(struct divider *d, const struct smaps_row *row, const struct piece *self)
{
	struct amounts all = row_amounts(row), left = all;
	struct piece file = *self, copy = *self;

	copy.owner = OWNER_FILE_PRIVATE;
	copy.kind = "written";
	copy.a = (struct amounts){ .resident = least(row->anon, all.resident) };
	if (!row->map.shared)
		copy.a.swap = all.swap;
	copy.a.mapped = least(copy.a.resident + copy.a.swap, all.mapped);
	if (copy.a.resident == 0 && copy.a.swap == 0) {
		file.a = all;
		return put_piece(d->out, &file) ? 0 : -ENOMEM;
	}
	take_share(&all, &left, &copy);
	/* these are anonymous by nature */
	copy.a.huge = least(row->anon_huge, copy.a.resident);
	copy.a.lazyfree = all.lazyfree;
	file.a = (struct amounts){
		.mapped = all.mapped - copy.a.mapped,
		.resident = all.resident - copy.a.resident,
		.swap = all.swap - copy.a.swap,
		.huge = all.huge - least(copy.a.huge, all.huge),
		.locked = all.locked - copy.a.locked,
		.hugetlb = all.hugetlb,
	};
	/* all of it has been written: there is no page of the file left in it (of a mapping that
	 * was read twice there may be more than its address space has room for) */
	if (file.a.mapped == 0 && file.a.resident == 0 && file.a.swap == 0)
		return put_piece(d->out, &copy) ? 0 : -ENOMEM;
	return put_piece(d->out, &file) && put_piece(d->out, &copy) ? 0 : -ENOMEM;
}

static int assign_row(struct divider *d, const struct smaps_row *row)
{
	struct piece self = { .start = row->map.start, .end = row->map.end, .row = row, .id = -1 };

	owner_of_row(row, d->f, &d->go, &self);
	if (row->map.inode)
		d->last = NULL;
	/* pages from the huge page pool are anonymous, whatever file the kernel keeps them in */
	if (row->map.inode && !(row->flags & SMAPS_HUGETLB))
		return assign_file(d, row, &self);
	return assign_anon(d, row, &self);
}

int owners_assign(const struct smaps *s, struct owner_facts *f, struct owners *out)
{
	struct divider d = { .f = f, .out = out, .countable = COUNTABLE };

	memset(out, 0, sizeof(*out));
	for (size_t k = 0; k < CLAIM_CLASSES; k++)
		claims_settle(&f->claims[k]);
	for (size_t i = 0; i < s->n; i++) {
		if (assign_row(&d, &s->v[i])) {
			owners_free(out);
			return -ENOMEM;
		}
	}
	owner_of_rest(out, f);
	owners_sum(out);
	return 0;
}

void owners_sum(struct owners *o)
{
	o->total = (struct amounts){ 0 };
	for (size_t i = 0; i < o->n; i++)
		add_amounts(&o->total, &o->v[i].a);
}

void owners_free(struct owners *o)
{
	free(o->v);
	memset(o, 0, sizeof(*o));
}

/* ---- the table */

/* Owners times the few kinds that each has. */
#define ROWS_MAX 128

static bool is_larger(const struct piece *a, const struct piece *b)
{
	if (a->a.resident != b->a.resident)
		return a->a.resident > b->a.resident;
	return a->a.mapped > b->a.mapped;
}

static bool same_kind(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static struct owner_row *row_of(struct owner_table *t, const struct piece *p)
{
	struct owner_row *row;

	for (size_t i = 0; i < t->n; i++) {
		row = &t->v[i];
		if (row->owner == p->owner && same_kind(row->kind, p->kind))
			return row;
	}
	if (t->n == ROWS_MAX)
		return NULL;
	row = &t->v[t->n++];
	*row = (struct owner_row){
		.owner = p->owner, .basis = p->basis, .kind = p->kind, .largest = p
	};
	return row;
}

static int by_resident(const void *pa, const void *pb)
{
	const struct owner_row *a = pa, *b = pb;

	if (a->a.resident != b->a.resident)
		return a->a.resident > b->a.resident ? -1 : 1;
	if (a->a.mapped != b->a.mapped)
		return a->a.mapped > b->a.mapped ? -1 : 1;
	return (a->owner > b->owner) - (a->owner < b->owner);
}

int owners_table(const struct owners *o, struct owner_table *out)
{
	memset(out, 0, sizeof(*out));
	out->v = reallocarray(NULL, ROWS_MAX, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; i < o->n; i++) {
		struct owner_row *row = row_of(out, &o->v[i]);

		/* no facts have so many kinds; a sum that is too small must not be */
		if (!row) {
			owner_table_free(out);
			return -EOVERFLOW;
		}
		row->count += !o->v[i].continues;
		if (o->v[i].basis > row->basis)
			row->basis = o->v[i].basis;
		if (is_larger(&o->v[i], row->largest))
			row->largest = &o->v[i];
		add_amounts(&row->a, &o->v[i].a);
	}
	qsort(out->v, out->n, sizeof(*out->v), by_resident);
	return 0;
}

void owner_table_free(struct owner_table *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

const char *piece_label(const struct piece *p)
{
	static const char memfd[] = "/memfd:";
	const char *name = p->row->map.name, *slash = strrchr(name, '/');

	if (!name[0] || strcmp(name, "/dev/zero") == 0)
		return p->kind;
	if (strncmp(name, memfd, sizeof(memfd) - 1) == 0)
		return name + sizeof(memfd) - 1;
	return slash && slash[1] ? slash + 1 : name;
}
