// SPDX-License-Identifier: GPL-3.0-or-later
#include "bytes.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 4096

static bool make_room(struct bytes *b, size_t more)
{
	size_t cap = b->cap ? b->cap : FIRST;
	char *grown;

	if (b->failed)
		return false;
	if (more <= b->cap - b->len)
		return true;
	while (cap - b->len < more && cap <= SIZE_MAX / 2)
		cap *= 2;
	grown = cap - b->len < more ? NULL : realloc(b->v, cap);
	if (!grown) {
		b->failed = true;
		return false;
	}
	b->v = grown;
	b->cap = cap;
	return true;
}

void bytes_put(struct bytes *b, const void *data, size_t len)
{
	if (!len || !make_room(b, len))
		return;
	memcpy(b->v + b->len, data, len);
	b->len += len;
}

void bytes_char(struct bytes *b, char c)
{
	bytes_put(b, &c, 1);
}

void bytes_text(struct bytes *b, const char *text)
{
	bytes_put(b, text, strlen(text));
}

void bytes_printf(struct bytes *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !make_room(b, (size_t)n + 1)) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(b->v + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void bytes_free(struct bytes *b)
{
	free(b->v);
	*b = (struct bytes){ .v = NULL };
}
