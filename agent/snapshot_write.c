// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "snapshot.h"
#include "snapshot_fields.h"

#define PIECE	    16384
#define GZIP_WINDOW (15 + 16) /* deflateInit2(3): the largest, with a gzip header */

/* Text goes in, compressed bytes pile up; the first error stays. */
struct writer {
	z_stream z;
	char text[PIECE];
	size_t n;
	unsigned char *out;
	size_t len, cap;
	int err;
	const struct smaps_row *rows; /* that pieces point into */
};

static bool make_room(struct writer *w)
{
	size_t cap = w->cap ? w->cap * 2 : PIECE;
	unsigned char *grown;

	if (w->len < w->cap)
		return true;
	grown = realloc(w->out, cap);
	if (!grown)
		return false;
	w->out = grown;
	w->cap = cap;
	return true;
}

static void squeeze(struct writer *w, int flush)
{
	int rc = Z_OK;

	w->z.next_in = (unsigned char *)w->text;
	w->z.avail_in = (unsigned)w->n;
	w->n = 0;
	do {
		size_t room;

		if (w->err || !make_room(w)) {
			w->err = -ENOMEM;
			return;
		}
		room = w->cap - w->len;
		w->z.next_out = w->out + w->len;
		w->z.avail_out = room < UINT32_MAX ? (unsigned)room : UINT32_MAX;
		room = w->z.avail_out;
		rc = deflate(&w->z, flush);
		w->len += room - w->z.avail_out;
	} while (flush == Z_FINISH ? rc == Z_OK || rc == Z_BUF_ERROR : w->z.avail_out == 0);
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		w->err = -EIO;
}

static void put_char(struct writer *w, char c)
{
	if (w->n == PIECE)
		squeeze(w, Z_NO_FLUSH);
	w->text[w->n++] = c;
}

static void put(struct writer *w, const char *text)
{
	for (; *text; text++)
		put_char(w, *text);
}

__attribute__((format(printf, 2, 3))) static void putf(struct writer *w, const char *fmt, ...)
{
	char buf[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	put(w, buf);
}

/* raw: a backslash of the text's own is told from one of ours. */
static void put_string(struct writer *w, const char *text, size_t max, bool raw)
{
	put_char(w, '"');
	for (size_t i = 0; i < max && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c >= 0x7f)
			putf(w, "\\\\x%02x", c);
		else if (c == '\\')
			put(w, raw ? "\\\\\\\\" : "\\\\");
		else if (c == '"')
			put(w, "\\\"");
		else
			put_char(w, (char)c);
	}
	put_char(w, '"');
}

static void put_unsigned(struct writer *w, uint64_t v)
{
	putf(w, v > INT64_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, v);
}

static void put_real(struct writer *w, double v)
{
	if (!(v >= 0 && v <= 1e15)) /* nor if it is no number at all */
		v = 0;
	putf(w, "%.17g", v);
}

static void put_time(struct writer *w, const struct timespec *t)
{
	char text[64] = "1970-01-01T00:00:00";
	struct tm tm;

	if (gmtime_r(&t->tv_sec, &tm) && tm.tm_year >= 0 && tm.tm_year < 8000)
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	putf(w, "\"%s.%09ldZ\"", text, t->tv_nsec);
}

static void put_facts(struct writer *w, const struct facts *f)
{
	const char *between = "";

	put_char(w, '{');
	for (unsigned i = 0; i < FACT_COUNT; i++) {
		const struct fact_info *info = fact_info((enum fact_id)i);
		const struct fact *v = &f->v[i];

		if (!v->known)
			continue;
		putf(w, "%s\n\"%s\":{\"origin\":\"%s\",\"value\":", between, info->name,
		     origin_name(v->origin));
		if (info->kind == KIND_FRACTION)
			put_real(w, v->fraction);
		else if (info->kind == KIND_TEXT)
			put_string(w, v->text, sizeof(v->text), false);
		else if (info->kind == KIND_BOOL)
			put(w, v->n ? "true" : "false");
		else
			put_unsigned(w, v->n);
		put_char(w, '}');
		between = ",";
	}
	put_char(w, '}');
}

/* ---- members */

static uint64_t unsigned_at(const struct field *f, const void *at)
{
	return f->size == sizeof(uint64_t) ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static int64_t signed_at(const struct field *f, const void *at)
{
	return f->size == sizeof(int64_t) ? *(const int64_t *)at : *(const int32_t *)at;
}

static size_t count_at(const struct field *f, const void *base)
{
	return *(const size_t *)((const char *)base + f->count);
}

static bool is_nothing(const struct field *f, const void *base)
{
	const void *at = (const char *)base + f->offset;

	switch (f->kind) {
	case FIELD_BOOL:
		return !*(const bool *)at;
	case FIELD_SIGNED:
		return signed_at(f, at) == 0;
	case FIELD_UNSIGNED:
	case FIELD_ADDRESS:
	case FIELD_ENUM:
		return unsigned_at(f, at) == 0;
	case FIELD_REAL:
		return !(*(const double *)at > 0);
	case FIELD_LETTER:
	case FIELD_TEXT:
		return *(const char *)at == '\0';
	case FIELD_WORDS:
	case FIELD_NAME:
		return !*(const char *const *)at || **(const char *const *)at == '\0';
	case FIELD_OBJECT:
		for (const struct field *s = f->sub; s->name; s++)
			if (!is_nothing(s, at))
				return false;
		return true;
	case FIELD_LIST:
	case FIELD_ARRAY:
		return count_at(f, base) == 0;
	default:
		return false;
	}
}

static void put_value(struct writer *w, const struct field *f, const void *base);

static void put_object(struct writer *w, const struct field *f, const void *base)
{
	const char *between = "";

	put_char(w, '{');
	for (; f->name; f++) {
		if (!f->must && is_nothing(f, base))
			continue;
		putf(w, "%s\"%s\":", between, f->name);
		put_value(w, f, base);
		between = ",";
	}
	put_char(w, '}');
}

static void put_list(struct writer *w, const struct field *f, const void *base)
{
	const char *v = (const char *)base + f->offset;

	if (f->kind == FIELD_LIST)
		v = *(const char *const *)(const void *)v;
	put_char(w, '[');
	for (size_t i = 0; i < count_at(f, base); i++) {
		put(w, i ? ",\n" : "\n");
		put_object(w, f->sub, v + i * f->size);
	}
	put_char(w, ']');
}

static void put_value(struct writer *w, const struct field *f, const void *base)
{
	const void *at = (const char *)base + f->offset;
	const char *text;

	switch (f->kind) {
	case FIELD_BOOL:
		put(w, *(const bool *)at ? "true" : "false");
		break;
	case FIELD_SIGNED:
		putf(w, "%" PRId64, signed_at(f, at));
		break;
	case FIELD_UNSIGNED:
		put_unsigned(w, unsigned_at(f, at));
		break;
	case FIELD_ADDRESS:
		putf(w, "\"0x%" PRIx64 "\"", unsigned_at(f, at));
		break;
	case FIELD_REAL:
		put_real(w, *(const double *)at);
		break;
	case FIELD_LETTER:
		put_string(w, at, 1, false);
		break;
	case FIELD_TEXT:
		put_string(w, at, f->size, false);
		break;
	case FIELD_WORDS:
	case FIELD_NAME:
		text = *(const char *const *)at;
		put_string(w, text ? text : "", SIZE_MAX, f->kind == FIELD_NAME);
		break;
	case FIELD_ENUM:
		putf(w, "\"%s\"", f->word((unsigned)unsigned_at(f, at)));
		break;
	case FIELD_TIME:
		put_time(w, at);
		break;
	case FIELD_OBJECT:
		put_object(w, f->sub, at);
		break;
	case FIELD_LIST:
	case FIELD_ARRAY:
		put_list(w, f, base);
		break;
	case FIELD_ROW:
		put_unsigned(w, (uint64_t)(*(const struct smaps_row *const *)at - w->rows));
		break;
	case FIELD_FACTS:
		put_facts(w, at);
		break;
	case FIELD_OPS:
		text = (*(const struct allocator_ops *const *)at)->name;
		put_string(w, text, SIZE_MAX, false);
		break;
	}
}

int snapshot_encode(const struct snapshot *s, unsigned char **out, size_t *len)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	if (deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(w);
		return -ENOMEM;
	}
	w->rows = s->look.memory.smaps.v;
	/* first of all, so that the beginning of a file tells what it is */
	putf(w, "{\"schema\":\"" SNAPSHOT_SCHEMA "%d\",\n\"snapshot\":", SNAPSHOT_FORMAT);
	put_object(w, snapshot_fields, s);
	put(w, "}\n");
	squeeze(w, Z_FINISH);
	deflateEnd(&w->z);
	err = w->err;
	if (err) {
		free(w->out);
	} else {
		*out = w->out;
		*len = w->len;
	}
	free(w);
	return err;
}
