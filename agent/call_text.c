// SPDX-License-Identifier: GPL-3.0-or-later
#include "call_text.h"

#include <stdio.h>
#include <string.h>

void call_text_clean(const char *text, char *buf, size_t size)
{
	size_t used = 0;

	/* room for the longest that one byte becomes */
	for (; *text && used + sizeof("\\xff") <= size; text++) {
		unsigned char u = (unsigned char)*text;

		if (u >= 0x20 && u < 0x7f)
			buf[used++] = *text;
		else
			used += (size_t)snprintf(buf + used, size - used, "\\x%02x", u);
	}
	buf[used] = '\0';
}

/* The "(" that the ")" before end closes, NULL without. */
static char *opening(char *name, char *end)
{
	int depth = 0;

	for (char *at = end; at-- > name;) {
		depth += *at == ')';
		depth -= *at == '(';
		if (!depth)
			return at;
	}
	return NULL;
}

void call_text_brief(char *name)
{
	static const char qualifier[] = " const";
	char *clone = strstr(name, " [clone "), *end, *open;
	size_t len;

	if (clone)
		*clone = '\0';
	len = strlen(name);
	if (len > sizeof(qualifier) && strcmp(name + len - (sizeof(qualifier) - 1), qualifier) == 0)
		len -= sizeof(qualifier) - 1;
	if (!len || name[len - 1] != ')')
		return;
	end = name + len;
	open = opening(name, end);
	/* "operator()" without parameters is a name; so is "(anonymous namespace)" */
	if (!open || open == name || open[-1] == ':')
		return;
	if (open - name >= 8 && memcmp(open - 8, "operator", 8) == 0)
		return;
	*open = '\0';
}

const char *call_text_part(const char *from, const char *end)
{
	static const char op[] = "operator";
	size_t len = sizeof(op) - 1;

	if (end - from < 3)
		return NULL;
	for (const char *at = end - 2; at > from; at--) {
		if (at[0] != '-' || at[1] != '-')
			continue;
		if ((size_t)(at - from) < len || memcmp(at - len, op, len) != 0)
			return at;
	}
	return NULL;
}
