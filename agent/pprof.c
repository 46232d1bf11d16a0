// SPDX-License-Identifier: GPL-3.0-or-later
#include "pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gzip.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD,
	PROFILE_DEFAULT_TYPE = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_NUM = 3, LABEL_UNIT };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM, FUNCTION_FILE };

/* Wire types of protocol buffers. */
enum { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

struct message {
	const struct calls *c;
	const struct pprof_extra *extra;
	struct bytes *out;
	struct bytes part, packed; /* a message inside, and a list inside of that */
	struct texts strings;
	int err;
};

/* ---- the encoding */

static void put_varint(struct bytes *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		bytes_char(b, (char)(v | 0x80));
	bytes_char(b, (char)v);
}

static void put_number(struct bytes *b, unsigned field, uint64_t v)
{
	if (!v)
		return; /* what a reader takes it for */
	put_varint(b, field << 3 | WIRE_VARINT);
	put_varint(b, v);
}

static void put_data(struct bytes *b, unsigned field, const void *data, size_t len)
{
	put_varint(b, field << 3 | WIRE_LENGTH);
	put_varint(b, len);
	bytes_put(b, data, len);
}

/* The message that was put together in m->part. */
static void put_part(struct message *m, struct bytes *to, unsigned field)
{
	m->err = m->err ? m->err : m->part.failed || m->packed.failed ? -ENOMEM : 0;
	put_data(to, field, m->part.v, m->part.len);
	m->part.len = 0;
}

static void put_string(struct message *m, struct bytes *b, unsigned field, const char *text)
{
	uint32_t number = 0;

	if (!m->err)
		m->err = texts_add(&m->strings, text, &number);
	put_number(b, field, number);
}

/* ---- what is in it */

static void put_type(struct message *m, unsigned field, const char *type, const char *unit)
{
	put_string(m, &m->part, TYPE_TYPE, type);
	put_string(m, &m->part, TYPE_UNIT, unit);
	put_part(m, m->out, field);
}

static void put_types(struct message *m)
{
	if (m->c->profile->has_accum) {
		put_type(m, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
		put_type(m, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
	}
	put_type(m, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
	put_type(m, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
	put_type(m, PROFILE_PERIOD_TYPE, "space", "bytes");
	put_number(m->out, PROFILE_PERIOD, m->c->profile->sample_bytes);
	put_string(m, m->out, PROFILE_DEFAULT_TYPE, "inuse_space");
	if (m->extra)
		put_number(m->out, PROFILE_TIME, (uint64_t)m->extra->time_ns);
}

static void put_counts(struct message *m, const struct profile_count *n)
{
	if (m->c->profile->has_accum) {
		put_varint(&m->packed, profile_round(n->all_objects));
		put_varint(&m->packed, profile_round(n->all_bytes));
	}
	put_varint(&m->packed, profile_round(n->live_objects));
	put_varint(&m->packed, profile_round(n->live_bytes));
}

/* The mean size of a block, as pprof's own readers of heap profiles label their samples. */
static void put_label(struct message *m, const struct profile_count *n)
{
	bool live = n->live_objects > 0;
	double objects = live ? n->live_objects : n->all_objects;
	struct bytes *label = &m->packed;

	if (!(objects > 0))
		return;
	label->len = 0;
	put_string(m, label, LABEL_KEY, "bytes");
	put_number(label, LABEL_NUM,
		   profile_round((live ? n->live_bytes : n->all_bytes) / objects));
	put_data(&m->part, SAMPLE_LABEL, label->v, label->len);
}

static void put_samples(struct message *m)
{
	for (size_t i = 0; i < m->c->stacks; i++) {
		const struct call_stack *s = &m->c->stack[i];

		m->packed.len = 0;
		for (uint32_t k = 0; k < s->depth; k++)
			put_varint(&m->packed, s->site[k] + 1);
		put_data(&m->part, SAMPLE_LOCATION, m->packed.v, m->packed.len);
		m->packed.len = 0;
		put_counts(m, s->n);
		put_data(&m->part, SAMPLE_VALUE, m->packed.v, m->packed.len);
		put_label(m, s->n);
		put_part(m, m->out, PROFILE_SAMPLE);
	}
}

static void put_mappings(struct message *m)
{
	const struct profile *p = m->c->profile;

	for (size_t i = 0; i < p->maps; i++) {
		const struct profile_map *map = &p->map[i];
		const char *build_id = map->build_id;

		if (!build_id && m->extra && m->extra->build_id)
			build_id = m->extra->build_id(m->extra->arg, i);
		put_number(&m->part, MAPPING_ID, i + 1);
		put_number(&m->part, MAPPING_START, map->start);
		put_number(&m->part, MAPPING_LIMIT, map->end);
		put_number(&m->part, MAPPING_OFFSET, map->offset);
		put_string(m, &m->part, MAPPING_FILE, map->path);
		put_string(m, &m->part, MAPPING_BUILD, build_id ? build_id : "");
		put_part(m, m->out, PROFILE_MAPPING);
	}
}

static void put_locations(struct message *m)
{
	const struct calls *c = m->c;

	for (size_t i = 0; i < c->sites; i++) {
		const struct call_site *s = &c->site[i];

		put_number(&m->part, LOCATION_ID, i + 1);
		put_number(&m->part, LOCATION_MAPPING,
			   s->map ? (uint64_t)(s->map - c->profile->map) + 1 : 0);
		put_number(&m->part, LOCATION_ADDRESS, s->pc);
		for (uint32_t k = 0; s->known && k < s->lines; k++) {
			const struct call_line *line = &c->line[s->first + k];

			m->packed.len = 0;
			put_number(&m->packed, LINE_FUNCTION, line->func + 1);
			put_number(&m->packed, LINE_LINE, line->line);
			put_data(&m->part, LOCATION_LINE, m->packed.v, m->packed.len);
		}
		put_part(m, m->out, PROFILE_LOCATION);
	}
}

static void put_functions(struct message *m)
{
	const struct calls *c = m->c;

	for (size_t i = 0; i < c->funcs; i++) {
		const struct call_func *f = &c->func[i];

		put_number(&m->part, FUNCTION_ID, i + 1);
		put_string(m, &m->part, FUNCTION_NAME, calls_text(c, f->name));
		put_string(m, &m->part, FUNCTION_SYSTEM, calls_text(c, f->system));
		put_string(m, &m->part, FUNCTION_FILE, calls_text(c, f->file));
		put_part(m, m->out, PROFILE_FUNCTION);
	}
}

static void put_strings(struct message *m)
{
	for (size_t i = 0; i < m->strings.n; i++)
		put_data(m->out, PROFILE_STRING, m->strings.v[i], strlen(m->strings.v[i]));
}

int pprof_message(const struct calls *c, const struct pprof_extra *extra, struct bytes *out)
{
	struct message m = { .c = c, .extra = extra, .out = out };
	uint32_t empty;

	m.strings.pool = pool_new();
	m.err = m.strings.pool ? texts_add(&m.strings, "", &empty) : -ENOMEM;
	if (!m.err) {
		put_types(&m);
		put_samples(&m);
		put_mappings(&m);
		put_locations(&m);
		put_functions(&m);
		put_strings(&m);
	}
	pool_free(m.strings.pool);
	texts_free(&m.strings);
	bytes_free(&m.part);
	bytes_free(&m.packed);
	return m.err ? m.err : out->failed ? -ENOMEM : 0;
}

int pprof_encode(const struct calls *c, const struct pprof_extra *extra, unsigned char **out,
		 size_t *len)
{
	struct bytes message = { .v = NULL };
	int err = pprof_message(c, extra, &message);

	if (!err)
		err = gzip_bytes(message.v, message.len, out, len);
	bytes_free(&message);
	return err;
}
