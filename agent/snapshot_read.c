// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "snapshot.h"
#include "snapshot_text.h"
#include "snapshot_value.h"

/* ---- facts and allocators */

static const char *origin_word(unsigned i)
{
	return origin_name((enum fact_origin)i);
}

static int put_fact(struct parser *r, const json_t *v, enum fact_kind kind, struct fact *out)
{
	unsigned origin;
	bool on = false;
	int err = value_word(r, json_object_get(v, "origin"), origin_word, FROM_PREDICTION + 1,
			     &origin);

	if (err)
		return err;
	*out = (struct fact){ .known = true, .origin = (enum fact_origin)origin };
	v = json_object_get(v, "value");
	switch (kind) {
	case KIND_FRACTION:
		return value_real(r, v, 1, &out->fraction);
	case KIND_TEXT:
		return value_text(r, v, out->text, sizeof(out->text));
	case KIND_BOOL:
		err = value_bool(r, v, &on);
		out->n = on;
		return err;
	default:
		return value_unsigned(r, v, UINT64_MAX, &out->n);
	}
}

/* One that this program does not know is passed over. */
static int put_facts(struct parser *r, const json_t *v, struct facts *out)
{
	int err = json_is_object(v) ? 0 : value_wrong(r, "is no object");

	for (unsigned i = 0; !err && i < FACT_COUNT; i++) {
		const struct fact_info *info = fact_info((enum fact_id)i);
		const json_t *fact = json_object_get(v, info->name);
		size_t before;

		if (!fact)
			continue;
		before = value_enter(r, ".%s", info->name);
		err = put_fact(r, fact, info->kind, &out->v[i]);
		if (!err)
			value_leave(r, before);
	}
	return err;
}

/* Only the name: such an allocator can be printed, not asked. */
static int put_ops(struct parser *r, const json_t *v, const struct allocator_ops **out)
{
	struct allocator_ops *ops = pool_take(r->s->pool, sizeof(*ops));

	if (!ops)
		return value_no_memory(r);
	*out = ops;
	return value_words(r, v, &ops->name);
}

static int put_row(struct parser *r, const json_t *v, const struct smaps_row **out)
{
	const struct smaps *s = &r->s->look.memory.smaps;
	uint64_t i = 0;
	int err = value_unsigned(r, v, UINT64_MAX, &i);

	if (err)
		return err;
	if (i >= s->n)
		return value_wrong(r, "is %" PRIu64 ", but there are %zu mappings", i, s->n);
	*out = &s->v[i];
	return 0;
}

/* ---- members */

static int put_object(struct parser *r, const struct field *f, const json_t *o, void *base);

static int put_list(struct parser *r, const struct field *f, const json_t *v, void *base)
{
	char *list = (char *)base + f->offset;
	size_t n = json_array_size(v);
	int err = 0;

	if (!json_is_array(v))
		return value_wrong(r, "is no list");
	if (f->kind == FIELD_ARRAY && n > f->max)
		return value_wrong(r, "has %zu entries, %" PRIu64 " are the most", n, f->max);
	if (f->kind == FIELD_LIST && n) {
		char **at = (char **)(void *)list;

		*at = calloc(n, f->size);
		if (!*at)
			return value_no_memory(r);
		list = *at;
	}
	*(size_t *)(void *)((char *)base + f->count) = n;
	for (size_t i = 0; !err && i < n; i++) {
		size_t before = value_enter(r, "[%zu]", i);

		err = put_object(r, f->sub, json_array_get(v, i), list + i * f->size);
		if (!err)
			value_leave(r, before);
	}
	return err;
}

static int put_enum(struct parser *r, const struct field *f, const json_t *v, void *at)
{
	unsigned n;
	int err = value_word(r, v, f->word, f->max, &n);

	if (!err)
		*(unsigned *)at = n;
	return err;
}

static int put_value(struct parser *r, const struct field *f, const json_t *v, void *base)
{
	void *at = (char *)base + f->offset;

	switch (f->kind) {
	case FIELD_BOOL:
		return value_bool(r, v, at);
	case FIELD_SIGNED:
		return value_put_signed(r, f, v, at);
	case FIELD_UNSIGNED:
	case FIELD_ADDRESS:
		return value_put_unsigned(r, f, v, at);
	case FIELD_REAL:
		return value_real(r, v, 1e15, at);
	case FIELD_LETTER:
		return value_letter(r, v, at);
	case FIELD_TEXT:
		return value_text(r, v, at, f->size);
	case FIELD_WORDS:
		return value_words(r, v, at);
	case FIELD_NAME:
		return value_name(r, v, at);
	case FIELD_ENUM:
		return put_enum(r, f, v, at);
	case FIELD_TIME:
		return value_time(r, v, at);
	case FIELD_OBJECT:
		return put_object(r, f->sub, v, at);
	case FIELD_LIST:
	case FIELD_ARRAY:
		return put_list(r, f, v, base);
	case FIELD_ROW:
		return put_row(r, v, at);
	case FIELD_FACTS:
		return put_facts(r, v, at);
	case FIELD_OPS:
		return put_ops(r, v, at);
	}
	return 0;
}

/* What is left out is zero already, but for strings that must be there. */
static void put_nothing(const struct field *f, void *base)
{
	const char **at = (const char **)(void *)((char *)base + f->offset);

	if (f->kind == FIELD_NAME)
		*at = "";
	else if (f->kind == FIELD_WORDS)
		*at = f->none;
}

/* In the table's order, whatever the order in the file; base is zeroed. */
static int put_object(struct parser *r, const struct field *f, const json_t *o, void *base)
{
	int err = json_is_object(o) ? 0 : value_wrong(r, "is no object");

	for (; !err && f->name; f++) {
		const json_t *v = json_object_get(o, f->name);
		size_t before;

		if (!v && !f->must) {
			put_nothing(f, base);
			continue;
		}
		before = value_enter(r, "%s%s", r->len ? "." : "", f->name);
		err = v ? put_value(r, f, v, base) : value_wrong(r, "is missing");
		if (!err)
			value_leave(r, before);
	}
	return err;
}

/* ---- what must hold between members */

static int check_mappings(struct parser *r, const struct smaps *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct map *m = &s->v[i].map;

		if (m->start > m->end || (i && m->start < s->v[i - 1].map.start))
			return value_wrong(r, "mapping %zu of %zu is out of order", i, s->n);
	}
	return 0;
}

static int check_pieces(struct parser *r, const struct owners *o)
{
	uint64_t sum[sizeof(struct amounts) / sizeof(uint64_t)] = { 0 };

	for (size_t i = 0; i < o->n; i++) {
		const struct piece *p = &o->v[i];
		uint64_t part[sizeof(struct amounts) / sizeof(uint64_t)];

		if (p->start > p->end || p->start < p->row->map.start || p->end > p->row->map.end ||
		    (i && p->start < o->v[i - 1].start))
			return value_wrong(r, "piece %zu of %zu is out of order", i, o->n);
		memcpy(part, &p->a, sizeof(part));
		for (size_t k = 0; k < sizeof(sum) / sizeof(sum[0]); k++) {
			sum[k] += part[k]; /* each part is at most the maximum */
			if (sum[k] > FIELD_BYTES_MAX)
				return value_wrong(r,
						   "the pieces add up to more than there can be");
		}
	}
	return 0;
}

static int check_whole(struct parser *r)
{
	struct snapshot *s = r->s;
	struct memory *m = &s->look.memory;
	struct owner_table rows;
	int err = check_mappings(r, &m->smaps);

	if (!err)
		err = check_pieces(r, &m->owners);
	if (err)
		return err;
	owners_sum(&m->owners);
	m->remainder = (int64_t)(m->usage.rss - m->owners.total.resident);
	err = owners_table(&m->owners, &rows);
	if (err)
		return err == -ENOMEM ? value_no_memory(r)
				      : value_wrong(r, "there are too many owners");
	owner_table_free(&rows);
	s->look.jemalloc = allocators_get(&s->allocs, "jemalloc");
	s->look.tcmalloc.a = allocators_get(&s->allocs, "tcmalloc");
	s->look.mimalloc.a = allocators_get(&s->allocs, "mimalloc");
	if (s->jemalloc_arenas.n > JEMALLOC_ARENAS_MAX)
		return value_wrong(r, "there are %zu arenas of jemalloc, %d are the most",
				   s->jemalloc_arenas.n, JEMALLOC_ARENAS_MAX);
	jemalloc_arenas_sum(&s->jemalloc_arenas);
	s->jemalloc_arenas.fresh.at = s->time;
	return 0;
}

/* ---- the document */

static int check_schema(struct parser *r, const json_t *root)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	size_t len = strlen(SNAPSHOT_SCHEMA);
	uint64_t format;

	if (!schema || strncmp(schema, SNAPSHOT_SCHEMA, len) != 0 ||
	    !value_digits(schema + len, "0123456789", 10, &format) || format == 0)
		return snapshot_is_none(r->name, r->d);
	if (format > SNAPSHOT_FORMAT)
		return diag_fail(r->d, -EINVAL, HM_USAGE, "newer-snapshot",
				 "load it with the heapmedic that has written it, or a newer one",
				 "%.150s has format %" PRIu64 ", this heapmedic reads %d", r->name,
				 format, SNAPSHOT_FORMAT);
	return 0;
}

int snapshot_parse(const char *text, size_t len, const char *name, struct snapshot *out,
		   struct diag *d)
{
	struct parser r = { .s = out, .name = name, .d = d };
	json_error_t error;
	json_t *root;
	int err = snapshot_bounded(text, len, name, d);

	memset(out, 0, sizeof(*out));
	if (err)
		return err;
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!root && json_error_code(&error) == json_error_out_of_memory)
		return value_no_memory(&r);
	if (!root)
		return value_wrong(&r, "line %d: %.100s", error.line, error.text);
	err = check_schema(&r, root);
	if (!err) {
		out->pool = pool_new();
		err = out->pool ? put_object(&r, snapshot_fields, json_object_get(root, "snapshot"),
					     out)
				: value_no_memory(&r);
	}
	json_decref(root);
	if (!err)
		err = check_whole(&r);
	if (err)
		snapshot_free(out);
	return err;
}
