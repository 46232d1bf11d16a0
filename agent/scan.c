// SPDX-License-Identifier: GPL-3.0-or-later
#include "scan.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

bool scan_blanks(struct scan *s)
{
	const char *from = s->at;

	while (s->at < s->end && is_blank(*s->at))
		s->at++;
	return s->at > from;
}

bool scan_line(struct scan *s, struct scan *line)
{
	const char *eol;

	if (s->at >= s->end)
		return false;
	eol = memchr(s->at, '\n', scan_left(s));
	line->at = s->at;
	line->end = eol ? eol : s->end;
	s->at = eol ? eol + 1 : s->end;
	scan_blanks(line);
	while (line->end > line->at && is_blank(line->end[-1]))
		line->end--;
	return true;
}

bool scan_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if (scan_left(s) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 16;
}

bool scan_number(struct scan *s, unsigned base, uint64_t *out)
{
	struct scan t = *s;
	uint64_t v = 0;

	if (base == 16)
		(void)!scan_word(&t, "0x");
	if (t.at == t.end || digit(*t.at) >= base)
		return false;
	for (; t.at < t.end && digit(*t.at) < base; t.at++)
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, digit(*t.at), &v))
			return false;
	*out = v;
	s->at = t.at;
	return true;
}
