// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool.h"
#include "snapshot.h"
#include "snapshot_fields.h"
#include "snapshot_text.h"

#define WORDS_MAX 200 /* of a text that has no size of its own */

struct parser {
	struct snapshot *s;
	const char *name; /* of the file, for messages */
	char where[160];  /* "look.memory.pieces[3].owner" */
	size_t len;
	struct diag *d;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct parser *r, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return diag_fail(r->d, -EINVAL, HM_USAGE, "damaged-snapshot", SNAPSHOT_AGAIN,
			 "%.150s is damaged: %s%s%s", r->name, r->where, r->len ? " " : "", what);
}

static int no_memory(const struct parser *r)
{
	return diag_internal(r->d, -ENOMEM, "reading a snapshot");
}

/* Returns what leave takes back. */
__attribute__((format(printf, 2, 3))) static size_t enter(struct parser *r, const char *fmt, ...)
{
	size_t before = r->len, room = sizeof(r->where) - r->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(r->where + r->len, room, fmt, ap);
	va_end(ap);
	r->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

static void leave(struct parser *r, size_t before)
{
	r->len = before;
	r->where[before] = '\0';
}

/* ---- numbers and texts */

/* Digits and nothing else: strtoull(3) takes blanks and signs as well. */
static bool parse_number(const char *text, const char *digits, int base, uint64_t *out)
{
	if (!*text || text[strspn(text, digits)])
		return false;
	errno = 0;
	*out = strtoull(text, NULL, base);
	return errno == 0;
}

static int get_unsigned(struct parser *r, const json_t *v, uint64_t max, uint64_t *out)
{
	const char *text = json_string_value(v);

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		*out = (uint64_t)json_integer_value(v);
	else if (!text || !parse_number(text, "0123456789", 10, out))
		return wrong(r, "is no number of 0 or more");
	return *out <= max ? 0 : wrong(r, "is %" PRIu64 ", more than there can be", *out);
}

static int get_address(struct parser *r, const json_t *v, uint64_t *out)
{
	const char *text = json_string_value(v);

	if (!text || strncmp(text, "0x", 2) != 0 ||
	    !parse_number(text + 2, "0123456789abcdef", 16, out))
		return wrong(r, "is no address such as \"0x7f00\"");
	return 0;
}

static int put_unsigned(struct parser *r, const struct field *f, const json_t *v, void *at)
{
	uint64_t most = f->size == sizeof(uint64_t) ? UINT64_MAX : UINT32_MAX, n = 0;
	int err = f->kind == FIELD_ADDRESS ? get_address(r, v, &n)
					   : get_unsigned(r, v, f->max ? f->max : most, &n);

	if (!err && f->size == sizeof(uint64_t))
		*(uint64_t *)at = n;
	else if (!err)
		*(uint32_t *)at = (uint32_t)n;
	return err;
}

static int put_signed(struct parser *r, const struct field *f, const json_t *v, void *at)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v))
		return wrong(r, "is no number");
	if (f->size == sizeof(int64_t))
		*(int64_t *)at = n;
	else if (n < INT32_MIN || n > INT32_MAX)
		return wrong(r, "is %lld, more than there can be", (long long)n);
	else
		*(int32_t *)at = (int32_t)n;
	return 0;
}

static int get_real(struct parser *r, const json_t *v, double max, double *out)
{
	*out = json_number_value(v);
	if (!json_is_number(v) || !(*out >= 0 && *out <= max))
		return wrong(r, "is no number from 0 to %g", max);
	return 0;
}

static int get_bool(struct parser *r, const json_t *v, bool *out)
{
	*out = json_is_true(v);
	return json_is_boolean(v) ? 0 : wrong(r, "is neither true nor false");
}

/* These go to terminals as they are: what a terminal would obey is not in them. */
static int get_text(struct parser *r, const json_t *v, const char **out)
{
	*out = json_string_value(v);
	if (!*out)
		return wrong(r, "is no text");
	for (const char *p = *out; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			return wrong(r, "has a character in it that is not printable ASCII");
	return 0;
}

static int put_text(struct parser *r, const json_t *v, char *buf, size_t size)
{
	const char *text;
	int err = get_text(r, v, &text);

	/* escaped by the writer, one may have become longer than it was */
	if (!err)
		snprintf(buf, size, "%.*s", (int)size - 1, text);
	return err;
}

static int put_words(struct parser *r, const json_t *v, const char **out)
{
	const char *text;
	int err = get_text(r, v, &text);
	size_t len;
	char *copy;

	if (err)
		return err;
	len = strnlen(text, WORDS_MAX);
	copy = pool_take(r->s->pool, len + 1);
	if (!copy)
		return no_memory(r);
	memcpy(copy, text, len);
	*out = copy;
	return 0;
}

/* Undoes what the writer did: "\\" and "\x1b". False where it has not. */
static bool unescape(char *s)
{
	static const char hex[] = "0123456789abcdef";
	char *w = s;

	for (; *s; s++) {
		const char *high, *low;

		if (*s != '\\') {
			*w++ = *s;
			continue;
		}
		if (*++s == '\\') {
			*w++ = '\\';
			continue;
		}
		if (*s != 'x' || !s[1] || !s[2])
			return false;
		high = strchr(hex, s[1]);
		low = strchr(hex, s[2]);
		if (!high || !low || (high == hex && low == hex))
			return false;
		*w++ = (char)((high - hex) * 16 + (low - hex));
		s += 2;
	}
	*w = '\0';
	return true;
}

static int put_name(struct parser *r, const json_t *v, const char **out)
{
	const char *text;
	int err = get_text(r, v, &text);
	char *copy;

	if (err)
		return err;
	copy = pool_take(r->s->pool, strlen(text) + 1);
	if (!copy)
		return no_memory(r);
	strcpy(copy, text);
	*out = copy;
	return unescape(copy) ? 0 : wrong(r, "has a \\ in it that begins nothing");
}

static int put_letter(struct parser *r, const json_t *v, char *out)
{
	const char *text;
	int err = get_text(r, v, &text);

	if (err)
		return err;
	if (strlen(text) > 1)
		return wrong(r, "is more than one letter");
	*out = text[0];
	return 0;
}

static int get_word(struct parser *r, const json_t *v, const char *(*word)(unsigned), uint64_t n,
		    unsigned *out)
{
	const char *text = json_string_value(v);

	for (*out = 0; text && *out < n; ++*out)
		if (!strcmp(text, word(*out)))
			return 0;
	return wrong(r, "is none of the words that it may be");
}

/* "2026-01-31T12:00:00.123456789Z" */
static int put_time(struct parser *r, const json_t *v, struct timespec *out)
{
	const char *text = json_string_value(v), *rest;
	struct tm tm = { 0 };
	uint64_t ns;
	char digits[10];

	rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest || *rest != '.' || strlen(rest) != 11 || rest[10] != 'Z')
		return wrong(r, "is no time such as 2026-01-31T12:00:00.123456789Z");
	memcpy(digits, rest + 1, 9);
	digits[9] = '\0';
	if (!parse_number(digits, "0123456789", 10, &ns))
		return wrong(r, "is no time such as 2026-01-31T12:00:00.123456789Z");
	*out = (struct timespec){ .tv_sec = timegm(&tm), .tv_nsec = (long)ns };
	return 0;
}

/* ---- facts and allocators */

static const char *origin_word(unsigned i)
{
	return origin_name((enum fact_origin)i);
}

static int put_fact(struct parser *r, const json_t *v, enum fact_kind kind, struct fact *out)
{
	unsigned origin;
	bool on = false;
	int err = get_word(r, json_object_get(v, "origin"), origin_word, FROM_PREDICTION + 1,
			   &origin);

	if (err)
		return err;
	*out = (struct fact){ .known = true, .origin = (enum fact_origin)origin };
	v = json_object_get(v, "value");
	switch (kind) {
	case KIND_FRACTION:
		return get_real(r, v, 1, &out->fraction);
	case KIND_TEXT:
		return put_text(r, v, out->text, sizeof(out->text));
	case KIND_BOOL:
		err = get_bool(r, v, &on);
		out->n = on;
		return err;
	default:
		return get_unsigned(r, v, UINT64_MAX, &out->n);
	}
}

/* One that this program does not know is passed over. */
static int put_facts(struct parser *r, const json_t *v, struct facts *out)
{
	int err = json_is_object(v) ? 0 : wrong(r, "is no object");

	for (unsigned i = 0; !err && i < FACT_COUNT; i++) {
		const struct fact_info *info = fact_info((enum fact_id)i);
		const json_t *fact = json_object_get(v, info->name);
		size_t before;

		if (!fact)
			continue;
		before = enter(r, ".%s", info->name);
		err = put_fact(r, fact, info->kind, &out->v[i]);
		if (!err)
			leave(r, before);
	}
	return err;
}

/* Only the name: such an allocator can be printed, not asked. */
static int put_ops(struct parser *r, const json_t *v, const struct allocator_ops **out)
{
	struct allocator_ops *ops = pool_take(r->s->pool, sizeof(*ops));

	if (!ops)
		return no_memory(r);
	*out = ops;
	return put_words(r, v, &ops->name);
}

static int put_row(struct parser *r, const json_t *v, const struct smaps_row **out)
{
	const struct smaps *s = &r->s->look.memory.smaps;
	uint64_t i = 0;
	int err = get_unsigned(r, v, UINT64_MAX, &i);

	if (err)
		return err;
	if (i >= s->n)
		return wrong(r, "is %" PRIu64 ", but there are %zu mappings", i, s->n);
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
		return wrong(r, "is no list");
	if (f->kind == FIELD_ARRAY && n > f->max)
		return wrong(r, "has %zu entries, %" PRIu64 " are the most", n, f->max);
	if (f->kind == FIELD_LIST && n) {
		char **at = (char **)(void *)list;

		*at = calloc(n, f->size);
		if (!*at)
			return no_memory(r);
		list = *at;
	}
	*(size_t *)(void *)((char *)base + f->count) = n;
	for (size_t i = 0; !err && i < n; i++) {
		size_t before = enter(r, "[%zu]", i);

		err = put_object(r, f->sub, json_array_get(v, i), list + i * f->size);
		if (!err)
			leave(r, before);
	}
	return err;
}

static int put_enum(struct parser *r, const struct field *f, const json_t *v, void *at)
{
	unsigned n;
	int err = get_word(r, v, f->word, f->max, &n);

	if (!err)
		*(unsigned *)at = n;
	return err;
}

static int put_value(struct parser *r, const struct field *f, const json_t *v, void *base)
{
	void *at = (char *)base + f->offset;

	switch (f->kind) {
	case FIELD_BOOL:
		return get_bool(r, v, at);
	case FIELD_SIGNED:
		return put_signed(r, f, v, at);
	case FIELD_UNSIGNED:
	case FIELD_ADDRESS:
		return put_unsigned(r, f, v, at);
	case FIELD_REAL:
		return get_real(r, v, 1e15, at);
	case FIELD_LETTER:
		return put_letter(r, v, at);
	case FIELD_TEXT:
		return put_text(r, v, at, f->size);
	case FIELD_WORDS:
		return put_words(r, v, at);
	case FIELD_NAME:
		return put_name(r, v, at);
	case FIELD_ENUM:
		return put_enum(r, f, v, at);
	case FIELD_TIME:
		return put_time(r, v, at);
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
	int err = json_is_object(o) ? 0 : wrong(r, "is no object");

	for (; !err && f->name; f++) {
		const json_t *v = json_object_get(o, f->name);
		size_t before;

		if (!v && !f->must) {
			put_nothing(f, base);
			continue;
		}
		before = enter(r, "%s%s", r->len ? "." : "", f->name);
		err = v ? put_value(r, f, v, base) : wrong(r, "is missing");
		if (!err)
			leave(r, before);
	}
	return err;
}

/* ---- what must hold between members */

static int check_mappings(struct parser *r, const struct smaps *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct map *m = &s->v[i].map;

		if (m->start > m->end || (i && m->start < s->v[i - 1].map.start))
			return wrong(r, "mapping %zu of %zu is out of order", i, s->n);
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
			return wrong(r, "piece %zu of %zu is out of order", i, o->n);
		memcpy(part, &p->a, sizeof(part));
		for (size_t k = 0; k < sizeof(sum) / sizeof(sum[0]); k++) {
			sum[k] += part[k]; /* each part is at most the maximum */
			if (sum[k] > FIELD_BYTES_MAX)
				return wrong(r, "the pieces add up to more than there can be");
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
		return err == -ENOMEM ? no_memory(r) : wrong(r, "there are too many owners");
	owner_table_free(&rows);
	s->look.jemalloc = allocators_get(&s->allocs, "jemalloc");
	return 0;
}

/* ---- the document */

static int check_schema(struct parser *r, const json_t *root)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	size_t len = strlen(SNAPSHOT_SCHEMA);
	uint64_t format;

	if (!schema || strncmp(schema, SNAPSHOT_SCHEMA, len) != 0 ||
	    !parse_number(schema + len, "0123456789", 10, &format) || format == 0)
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
		return no_memory(&r);
	if (!root)
		return wrong(&r, "line %d: %.100s", error.line, error.text);
	err = check_schema(&r, root);
	if (!err) {
		out->pool = pool_new();
		err = out->pool ? put_object(&r, snapshot_fields, json_object_get(root, "snapshot"),
					     out)
				: no_memory(&r);
	}
	json_decref(root);
	if (!err)
		err = check_whole(&r);
	if (err)
		snapshot_free(out);
	return err;
}
