// SPDX-License-Identifier: GPL-3.0-or-later
#include "fold.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>

#define LABEL_MAX 16 /* columns; a gap behind that ends no label */

/* One character at *at: its bytes are passed. Returns its columns: 0 or 1. */
static size_t pass(const char *s, size_t len, size_t *at)
{
	const char *end;

	if (s[*at] == '\033') {
		end = memchr(s + *at, 'm', len - *at);
		*at = end ? (size_t)(end - s) + 1 : len;
		return 0;
	}
	++*at;
	while (*at < len && ((unsigned char)s[*at] & 0xc0) == 0x80)
		++*at;
	return 1;
}

struct shape {
	size_t width;  /* columns */
	size_t indent; /* of what goes on */
	bool table;
};

/* Blanks at the start are no gap. */
static struct shape line_shape(const char *s, size_t len)
{
	struct shape shape = { .indent = 2 };
	size_t gaps = 0, blanks = 0, at = 0;
	bool begun = false;

	while (at < len) {
		bool blank = s[at] == ' ';

		if (!blank && blanks > 1 && begun && gaps++ == 0 && shape.width <= LABEL_MAX)
			shape.indent = shape.width;
		if (s[at] == '\t')
			shape.table = true;
		begun |= !blank && s[at] != '\033';
		blanks = blank ? blanks + 1 : s[at] == '\033' ? blanks : 0;
		shape.width += pass(s, len, &at);
	}
	shape.table |= gaps > 1;
	return shape;
}

/* Is what stands at s the unit of the number before it? */
static bool is_unit(const char *s, size_t len)
{
	static const char *const units[] = { "B",  "KiB", "MiB", "GiB", "TiB", "ns", "us",
					     "ms", "s",	  "m",	 "h",	"d",   "%" };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t n = strlen(units[i]);

		if (n <= len && memcmp(s, units[i], n) == 0 && (n == len || strchr(" ,.;:)", s[n])))
			return true;
	}
	return false;
}

/* The columns of the word at s, and its bytes in *n: up to the next blank, a number with its unit.
 */
static size_t word(const char *s, size_t len, size_t *n)
{
	size_t width = 0;

	*n = 0;
	while (*n < len && (s[*n] != ' ' || (*n && s[*n - 1] >= '0' && s[*n - 1] <= '9' &&
					     is_unit(s + *n + 1, len - *n - 1))))
		width += pass(s, len, n);
	return width;
}

static void fold_line(FILE *out, const char *s, size_t len, const struct shape *shape,
		      unsigned columns)
{
	size_t column = 0, at = 0;

	while (at < len) {
		size_t blanks = strspn(s + at, " "), n, wide;

		if (blanks > len - at)
			blanks = len - at;
		wide = word(s + at + blanks, len - at - blanks, &n);
		if (column > shape->indent && column + blanks + wide > columns) {
			fprintf(out, "\n%*s", (int)shape->indent, "");
			column = shape->indent;
		} else {
			fwrite(s + at, 1, blanks, out);
			column += blanks;
		}
		fwrite(s + at + blanks, 1, n, out);
		column += wide;
		at += blanks + n;
	}
}

void fold_text(FILE *out, const char *text, size_t len, unsigned columns)
{
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		struct shape shape = line_shape(text, n);

		if (!columns || shape.width <= columns || shape.table || shape.indent >= columns)
			fwrite(text, 1, n, out);
		else
			fold_line(out, text, n, &shape, columns);
		if (end)
			putc('\n', out);
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

void fold_to(FILE *to, const char *text, size_t len)
{
	struct winsize w;
	int fd = fileno(to);

	fold_text(to, text, len, fd < 0 || ioctl(fd, TIOCGWINSZ, &w) ? 0 : w.ws_col);
}
