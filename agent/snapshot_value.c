// SPDX-License-Identifier: GPL-3.0-or-later
#include "snapshot_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"
#include "snapshot_text.h"

#define WORDS_MAX 200 /* of a text that has no size of its own */

int value_wrong(const struct parser *r, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return diag_fail(r->d, -EINVAL, HM_USAGE, "damaged-snapshot", SNAPSHOT_AGAIN,
			 "%.150s is damaged: %s%s%s", r->name, r->where, r->len ? " " : "", what);
}

int value_no_memory(const struct parser *r)
{
	return diag_internal(r->d, -ENOMEM, "reading a snapshot");
}

size_t value_enter(struct parser *r, const char *fmt, ...)
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

void value_leave(struct parser *r, size_t before)
{
	r->len = before;
	r->where[before] = '\0';
}

/* ---- numbers and texts */

/* Digits and nothing else: strtoull(3) takes blanks and signs as well. */
bool value_digits(const char *text, const char *digits, int base, uint64_t *out)
{
	if (!*text || text[strspn(text, digits)])
		return false;
	errno = 0;
	*out = strtoull(text, NULL, base);
	return errno == 0;
}

int value_unsigned(struct parser *r, const json_t *v, uint64_t max, uint64_t *out)
{
	const char *text = json_string_value(v);

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		*out = (uint64_t)json_integer_value(v);
	else if (!text || !value_digits(text, "0123456789", 10, out))
		return value_wrong(r, "is no number of 0 or more");
	return *out <= max ? 0 : value_wrong(r, "is %" PRIu64 ", more than there can be", *out);
}

static int get_address(struct parser *r, const json_t *v, uint64_t *out)
{
	const char *text = json_string_value(v);

	if (!text || strncmp(text, "0x", 2) != 0 ||
	    !value_digits(text + 2, "0123456789abcdef", 16, out))
		return value_wrong(r, "is no address such as \"0x7f00\"");
	return 0;
}

int value_put_unsigned(struct parser *r, const struct field *f, const json_t *v, void *at)
{
	uint64_t most = f->size == sizeof(uint64_t) ? UINT64_MAX : UINT32_MAX, n = 0;
	int err = f->kind == FIELD_ADDRESS ? get_address(r, v, &n)
					   : value_unsigned(r, v, f->max ? f->max : most, &n);

	if (!err && f->size == sizeof(uint64_t))
		*(uint64_t *)at = n;
	else if (!err)
		*(uint32_t *)at = (uint32_t)n;
	return err;
}

int value_put_signed(struct parser *r, const struct field *f, const json_t *v, void *at)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v))
		return value_wrong(r, "is no number");
	if (f->size == sizeof(int64_t))
		*(int64_t *)at = n;
	else if (n < INT32_MIN || n > INT32_MAX)
		return value_wrong(r, "is %lld, more than there can be", (long long)n);
	else
		*(int32_t *)at = (int32_t)n;
	return 0;
}

int value_real(struct parser *r, const json_t *v, double max, double *out)
{
	*out = json_number_value(v);
	if (!json_is_number(v) || !(*out >= 0 && *out <= max))
		return value_wrong(r, "is no number from 0 to %g", max);
	return 0;
}

int value_bool(struct parser *r, const json_t *v, bool *out)
{
	*out = json_is_true(v);
	return json_is_boolean(v) ? 0 : value_wrong(r, "is neither true nor false");
}

/* These go to terminals as they are: what a terminal would obey is not in them. */
static int get_text(struct parser *r, const json_t *v, const char **out)
{
	*out = json_string_value(v);
	if (!*out)
		return value_wrong(r, "is no text");
	for (const char *p = *out; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			return value_wrong(r, "has a character in it that is not printable ASCII");
	return 0;
}

int value_text(struct parser *r, const json_t *v, char *buf, size_t size)
{
	const char *text;
	int err = get_text(r, v, &text);

	/* escaped by the writer, one may have become longer than it was */
	if (!err)
		snprintf(buf, size, "%.*s", (int)size - 1, text);
	return err;
}

int value_words(struct parser *r, const json_t *v, const char **out)
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
		return value_no_memory(r);
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

int value_name(struct parser *r, const json_t *v, const char **out)
{
	const char *text;
	int err = get_text(r, v, &text);
	char *copy;

	if (err)
		return err;
	copy = pool_take(r->s->pool, strlen(text) + 1);
	if (!copy)
		return value_no_memory(r);
	strcpy(copy, text);
	*out = copy;
	return unescape(copy) ? 0 : value_wrong(r, "has a \\ in it that begins nothing");
}

int value_letter(struct parser *r, const json_t *v, char *out)
{
	const char *text;
	int err = get_text(r, v, &text);

	if (err)
		return err;
	if (strlen(text) > 1)
		return value_wrong(r, "is more than one letter");
	*out = text[0];
	return 0;
}

int value_word(struct parser *r, const json_t *v, const char *(*word)(unsigned), uint64_t n,
	       unsigned *out)
{
	const char *text = json_string_value(v);

	for (*out = 0; text && *out < n; ++*out)
		if (!strcmp(text, word(*out)))
			return 0;
	return value_wrong(r, "is none of the words that it may be");
}

/* "2026-01-31T12:00:00.123456789Z" */
int value_time(struct parser *r, const json_t *v, struct timespec *out)
{
	const char *text = json_string_value(v), *rest;
	struct tm tm = { 0 };
	uint64_t ns;
	char digits[10];

	rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest || *rest != '.' || strlen(rest) != 11 || rest[10] != 'Z')
		return value_wrong(r, "is no time such as 2026-01-31T12:00:00.123456789Z");
	memcpy(digits, rest + 1, 9);
	digits[9] = '\0';
	if (!value_digits(digits, "0123456789", 10, &ns))
		return value_wrong(r, "is no time such as 2026-01-31T12:00:00.123456789Z");
	*out = (struct timespec){ .tv_sec = timegm(&tm), .tv_nsec = (long)ns };
	return 0;
}
