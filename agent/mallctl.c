// SPDX-License-Identifier: GPL-3.0-or-later
#include "mallctl.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "size.h"

static const struct ctl_name table[] = {
#include "mallctl_table.inc"
};

#define ROWS (sizeof(table) / sizeof(table[0]))

const struct ctl_name *ctl_table(size_t *n)
{
	*n = ROWS;
	return table;
}

/* Length of an index at the start of s: digits, or "all"; 0 if there is none. */
static size_t index_len(const char *s)
{
	size_t n = strspn(s, "0123456789");

	if (!n && !strncmp(s, "all", 3))
		n = 3;
	return s[n] == '.' || !s[n] ? n : 0;
}

static bool name_matches(const char *pattern, const char *name)
{
	while (*pattern) {
		size_t n;

		if (*pattern == '<' && *name != '<') {
			n = index_len(name);
			if (!n)
				return false;
			name += n;
			pattern += 3;
		} else if (*pattern++ != *name++) {
			return false;
		}
	}
	return !*name;
}

const struct ctl_name *ctl_find(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (name_matches(table[i].name, name))
			return &table[i];
	return NULL;
}

bool ctl_is_pattern(const char *name)
{
	return strchr(name, '<') != NULL;
}

#define NAME_MAX_LEN 79 /* the longest name in the table has 63 */

/* Writes name as the table would: its first index as <i>, the second as <j>. */
static void generalise(const char *name, char out[NAME_MAX_LEN + 1])
{
	char letter = 'i';
	size_t o = 0;
	bool start = true;

	while (*name && o < NAME_MAX_LEN - 3) {
		size_t n = start ? strspn(name, "0123456789") : 0;

		if (n && (name[n] == '.' || !name[n])) {
			o += (size_t)sprintf(out + o, "<%c>", letter);
			letter = 'j';
			name += n;
			start = false;
			continue;
		}
		start = *name == '.';
		out[o++] = *name++;
	}
	out[o] = '\0';
}

/* Levenshtein's distance; both at most NAME_MAX_LEN long. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t nb = strlen(b);

	if (nb > NAME_MAX_LEN)
		return UINT32_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

#define SUGGEST_MAX 8

size_t ctl_suggest(const char *name, const char **out, size_t max)
{
	unsigned score[SUGGEST_MAX] = { 0 };
	char wanted[NAME_MAX_LEN + 1];
	size_t n = 0, len;

	if (max > SUGGEST_MAX)
		max = SUGGEST_MAX;
	generalise(name, wanted);
	len = strlen(wanted);
	for (size_t i = 0; i < ROWS; i++) {
		size_t have = strlen(table[i].name), most = 2 + have / 2, at = n;
		unsigned s;

		/* Half of it different is not near any more, and it differs by its length at least.
		 */
		if (len > have + most || have > len + most)
			continue;
		s = distance(wanted, table[i].name);
		if (s > most)
			continue;
		while (at > 0 && score[at - 1] > s)
			at--;
		if (at >= max)
			continue;
		if (n < max)
			n++;
		memmove(score + at + 1, score + at, (n - at - 1) * sizeof(*score));
		memmove(out + at + 1, out + at, (n - at - 1) * sizeof(*out));
		score[at] = s;
		out[at] = table[i].name;
	}
	return n;
}

int ctl_unknown(const char *name, struct diag *d)
{
	const char *near[3];
	char hint[256] = "`mallctl --list` shows all names";
	size_t n = ctl_suggest(name, near, 3);
	size_t o = 0;

	for (size_t i = 0; i < n && o < sizeof(hint); i++)
		o += (size_t)snprintf(hint + o, sizeof(hint) - o, "%s%s",
				      i ? ", " : "nearest names: ", near[i]);
	return diag_fail(d, -ENOENT, HM_CALL_FAILED, "unknown-mallctl", hint,
			 "jemalloc has no name '%.100s'", name);
}

size_t ctl_size(enum ctl_type type)
{
	switch (type) {
	case CTL_BOOL:
		return 1;
	case CTL_UNSIGNED:
	case CTL_U32:
	case CTL_INT:
		return 4;
	case CTL_SIZE:
	case CTL_SSIZE:
	case CTL_U64:
	case CTL_STRING:
		return 8;
	case CTL_VOID:
	case CTL_OTHER:
		break;
	}
	return 0;
}

int ctl_value_encode(const struct ctl_value *v, unsigned char raw[8])
{
	uint64_t bits = v->u;

	memset(raw, 0, 8);
	switch (v->type) {
	case CTL_BOOL:
		raw[0] = v->b;
		return 0;
	case CTL_UNSIGNED:
	case CTL_U32:
	case CTL_INT:
	case CTL_SIZE:
	case CTL_SSIZE:
	case CTL_U64:
		if (v->type == CTL_INT || v->type == CTL_SSIZE)
			bits = (uint64_t)v->i;
		memcpy(raw, &bits, ctl_size(v->type)); /* x86-64: least significant byte first */
		return 0;
	case CTL_VOID:
	case CTL_STRING:
	case CTL_OTHER:
		break;
	}
	return -EINVAL;
}

int ctl_value_decode(enum ctl_type type, const unsigned char raw[8], struct ctl_value *out)
{
	int32_t i32;

	*out = (struct ctl_value){ .type = type };
	switch (type) {
	case CTL_BOOL:
		out->b = raw[0] != 0;
		return 0;
	case CTL_UNSIGNED:
	case CTL_U32:
	case CTL_SIZE:
	case CTL_U64:
		memcpy(&out->u, raw, ctl_size(type));
		return 0;
	case CTL_SSIZE:
		memcpy(&out->i, raw, 8);
		return 0;
	case CTL_INT:
		memcpy(&i32, raw, 4);
		out->i = i32;
		return 0;
	case CTL_VOID:
	case CTL_STRING:
	case CTL_OTHER:
		break;
	}
	return -EINVAL;
}

static int parse_bool(const char *text, bool *out)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {
		{ "true", true }, { "false", false }, { "1", true },   { "0", false },
		{ "on", true },	  { "off", false },   { "yes", true }, { "no", false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(text, words[i].text)) {
			*out = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_signed(const char *text, int64_t min, int64_t max, int64_t *out)
{
	char *end;

	if (*text != '-' && !isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (end == text || *end)
		return -EINVAL;
	return errno == ERANGE || *out < min || *out > max ? -ERANGE : 0;
}

static int parse_unsigned(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	return errno == ERANGE || *out > max ? -ERANGE : 0;
}

static int value_parse(const struct ctl_name *n, const char *text, struct ctl_value *out)
{
	switch (n->type) {
	case CTL_BOOL:
		return parse_bool(text, &out->b);
	case CTL_UNSIGNED:
	case CTL_U32:
		return parse_unsigned(text, UINT32_MAX, &out->u);
	case CTL_U64:
		return parse_unsigned(text, UINT64_MAX, &out->u);
	case CTL_SIZE:
		return size_parse(text, &out->u);
	case CTL_SSIZE:
		return parse_signed(text, INT64_MIN, INT64_MAX, &out->i);
	case CTL_INT:
		return parse_signed(text, INT32_MIN, INT32_MAX, &out->i);
	case CTL_STRING:
		if (strlen(text) >= sizeof(out->text))
			return -ERANGE;
		memcpy(out->text, text, strlen(text) + 1);
		return 0;
	case CTL_VOID:
	case CTL_OTHER:
		break;
	}
	return -EINVAL;
}

/* What a value of the type looks like, for the next step of an error. */
static const char *type_example(enum ctl_type type)
{
	switch (type) {
	case CTL_BOOL:
		return "write true or false";
	case CTL_UNSIGNED:
	case CTL_U32:
		return "write a number from 0 to 4294967295";
	case CTL_U64:
		return "write a number from 0 to 18446744073709551615";
	case CTL_SIZE:
		return "write bytes or a size: 4096, 512M, 1.5G";
	case CTL_SSIZE:
	case CTL_INT:
		return "write a whole number, -1 where it means never or unlimited";
	case CTL_STRING:
		return "write at most 1023 characters";
	case CTL_VOID:
	case CTL_OTHER:
		break;
	}
	return "it takes no value";
}

int ctl_value_parse(const struct ctl_name *n, const char *text, struct ctl_value *out,
		    struct diag *d)
{
	int rc;

	*out = (struct ctl_value){ .type = n->type };
	rc = value_parse(n, text, out);
	if (rc < 0)
		return diag_fail(d, rc, HM_USAGE, "bad-value", type_example(n->type),
				 "%s is of type %s: '%.64s' %s", n->name, n->ctype, text,
				 rc == -ERANGE ? "does not fit" : "is not one");
	return 0;
}

void ctl_value_format(const struct ctl_value *v, char *buf, size_t size)
{
	switch (v->type) {
	case CTL_BOOL:
		snprintf(buf, size, "%s", v->b ? "true" : "false");
		return;
	case CTL_UNSIGNED:
	case CTL_U32:
	case CTL_SIZE:
	case CTL_U64:
		snprintf(buf, size, "%" PRIu64, v->u);
		return;
	case CTL_SSIZE:
	case CTL_INT:
		snprintf(buf, size, "%" PRId64, v->i);
		return;
	case CTL_STRING:
		snprintf(buf, size, "%s", v->text);
		return;
	case CTL_VOID:
	case CTL_OTHER:
		break;
	}
	snprintf(buf, size, "%s", "");
}
