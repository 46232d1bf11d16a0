// SPDX-License-Identifier: GPL-3.0-or-later
#include "made_up.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/pool.h"
#include "../../agent/snapshot_fields.h"

static uint64_t next;

static void fill(const struct field *f, void *base);

static void fill_facts(struct facts *out)
{
	for (unsigned i = 0; i < FACT_COUNT; i++) {
		enum fact_id id = (enum fact_id)i;
		enum fact_origin o = (enum fact_origin)(++next % (FROM_PREDICTION + 1));

		switch (fact_info(id)->kind) {
		case KIND_FRACTION:
			facts_set_share(out, id, o, next, next * 3 + 1);
			break;
		case KIND_TEXT:
			facts_set_text(out, id, o, "2.36");
			break;
		case KIND_BOOL:
			facts_set(out, id, o, 1);
			break;
		default:
			facts_set(out, id, o, i % 2 ? next : UINT64_MAX - next);
		}
	}
}

static void fill_list(const struct field *f, void *base)
{
	char *v = (char *)base + f->offset;
	size_t n = f->kind == FIELD_ARRAY ? (size_t)f->max : MADE_UP_ROWS;

	if (f->kind == FIELD_LIST) {
		char *list = calloc(n, f->size);

		cr_assert(list);
		memcpy(v, &list, sizeof(list));
		v = list;
	}
	*(size_t *)(void *)((char *)base + f->count) = n;
	for (size_t i = 0; i < n; i++)
		for (const struct field *s = f->sub; s->name; s++)
			fill(s, v + i * f->size);
}

static void fill_unsigned(const struct field *f, void *at)
{
	uint64_t v = f->max && next > f->max ? f->max : next;

	if (f->size == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = !f->max && next % 3 == 0 ? UINT64_MAX - v : v;
}

static void fill_signed(const struct field *f, void *at)
{
	int64_t v = next % 2 ? (int64_t)next : -(int64_t)next;

	if (f->size == sizeof(int32_t))
		*(int32_t *)at = (int32_t)v;
	else
		*(int64_t *)at = v;
}

static void fill(const struct field *f, void *base)
{
	void *at = (char *)base + f->offset;

	next++;
	switch (f->kind) {
	case FIELD_BOOL:
		*(bool *)at = true;
		break;
	case FIELD_SIGNED:
		fill_signed(f, at);
		break;
	case FIELD_UNSIGNED:
	case FIELD_ADDRESS:
		fill_unsigned(f, at);
		break;
	case FIELD_REAL:
		*(double *)at = (double)next / 7;
		break;
	case FIELD_LETTER:
		*(char *)at = 'S';
		break;
	case FIELD_TEXT:
		snprintf(at, f->size, "\"%d\" \\n", (int)next);
		break;
	case FIELD_WORDS:
		*(const char **)at = "java heap";
		break;
	case FIELD_NAME:
		*(const char **)at = "/a\\x41 \x01\xff\xc3\xa9\"\n";
		break;
	case FIELD_ENUM:
		*(unsigned *)at = (unsigned)(next % f->max);
		break;
	case FIELD_TIME:
		*(struct timespec *)at = (struct timespec){ 1900000000, 12345678 };
		break;
	case FIELD_OBJECT:
		for (const struct field *s = f->sub; s->name; s++)
			fill(s, at);
		break;
	case FIELD_LIST:
	case FIELD_ARRAY:
		fill_list(f, base);
		break;
	case FIELD_ROW:
		break;
	case FIELD_FACTS:
		fill_facts(at);
		break;
	case FIELD_OPS:
		*(const struct allocator_ops **)at = next % 2 ? &glibc_ops : &jemalloc_ops;
		break;
	}
}

void made_up(struct snapshot *s)
{
	struct memory *m = &s->look.memory;

	memset(s, 0, sizeof(*s));
	next = 0;
	for (const struct field *f = snapshot_fields; f->name; f++)
		fill(f, s);
	for (size_t i = 0; i < MADE_UP_ROWS; i++) {
		m->smaps.v[i].map.start = (i + 1) << 20;
		m->smaps.v[i].map.end = (i + 2) << 20;
		m->owners.v[i].row = &m->smaps.v[i];
		m->owners.v[i].start = (i + 1) << 20;
		m->owners.v[i].end = ((i + 1) << 20) + 4096;
	}
	owners_sum(&m->owners);
	m->remainder = (int64_t)(m->usage.rss - m->owners.total.resident);
}

void made_up_free(struct snapshot *s)
{
	snapshot_free(s);
}

/* ---- comparing */

static const char *in; /* the table's place, for messages */

static void same_members(const struct field *f, const void *a, const void *b,
			 const struct snapshot *x, const struct snapshot *y);

static void same_list(const struct field *f, const void *a, const void *b, const struct snapshot *x,
		      const struct snapshot *y)
{
	const char *v = (const char *)a + f->offset, *w = (const char *)b + f->offset;
	size_t n = *(const size_t *)(const void *)((const char *)a + f->count);

	cr_assert_eq(n, *(const size_t *)(const void *)((const char *)b + f->count), "%s", f->name);
	if (f->kind == FIELD_LIST) {
		v = *(const char *const *)(const void *)v;
		w = *(const char *const *)(const void *)w;
	}
	in = f->name;
	for (size_t i = 0; i < n; i++)
		same_members(f->sub, v + i * f->size, w + i * f->size, x, y);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_facts(const struct facts *a, const struct facts *b)
{
	for (unsigned i = 0; i < FACT_COUNT; i++)
		if (a->v[i].known != b->v[i].known || a->v[i].origin != b->v[i].origin ||
		    a->v[i].n != b->v[i].n || a->v[i].fraction != b->v[i].fraction ||
		    strcmp(a->v[i].text, b->v[i].text) != 0)
			return false;
	return true;
}

static bool same_member(const struct field *f, const void *at, const void *bt,
			const struct snapshot *x, const struct snapshot *y)
{
	const struct timespec *t = at, *u = bt;

	switch (f->kind) {
	case FIELD_BOOL:
		return *(const bool *)at == *(const bool *)bt;
	case FIELD_LETTER:
		return *(const char *)at == *(const char *)bt;
	case FIELD_REAL:
		return *(const double *)at == *(const double *)bt;
	case FIELD_TEXT:
		return same_text(at, bt);
	case FIELD_WORDS:
	case FIELD_NAME:
		return same_text(*(const char *const *)at, *(const char *const *)bt);
	case FIELD_TIME:
		return t->tv_sec == u->tv_sec && t->tv_nsec == u->tv_nsec;
	case FIELD_ROW:
		return *(const struct smaps_row *const *)at - x->look.memory.smaps.v ==
		       *(const struct smaps_row *const *)bt - y->look.memory.smaps.v;
	case FIELD_FACTS:
		return same_facts(at, bt);
	case FIELD_OPS:
		return same_text((*(const struct allocator_ops *const *)at)->name,
				 (*(const struct allocator_ops *const *)bt)->name);
	default:
		return memcmp(at, bt, f->size) == 0;
	}
}

static void same_members(const struct field *f, const void *a, const void *b,
			 const struct snapshot *x, const struct snapshot *y)
{
	for (; f->name; f++) {
		const void *at = (const char *)a + f->offset, *bt = (const char *)b + f->offset;

		if (f->kind == FIELD_OBJECT) {
			in = f->name;
			same_members(f->sub, at, bt, x, y);
		} else if (f->kind == FIELD_LIST || f->kind == FIELD_ARRAY) {
			same_list(f, a, b, x, y);
		} else {
			cr_assert(same_member(f, at, bt, x, y), "%s: %s", in, f->name);
		}
	}
}

void made_up_same(const struct snapshot *a, const struct snapshot *b)
{
	in = "snapshot";
	same_members(snapshot_fields, a, b, a, b);
	cr_assert_eq(memcmp(&a->look.memory.owners.total, &b->look.memory.owners.total,
			    sizeof(struct amounts)),
		     0);
	cr_assert_eq(a->look.memory.remainder, b->look.memory.remainder);
}
