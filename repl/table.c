// SPDX-License-Identifier: GPL-3.0-or-later
#include "sink.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct table {
	const struct column *columns;
	size_t n;
	char **cells; /* n per row */
	size_t rows, cap;
	const unsigned *optional; /* columns, the one to be left out first */
	size_t optionals;
	bool flow;
	bool failed;
};

#define LEFT_OUT SIZE_MAX /* width of a column */
#define GAP	 2U
#define INDENT	 4U
#define CUT_MIN	 16U /* columns that the end of a path has at least */

struct table *table_new(const struct column *columns, size_t n)
{
	struct table *t = calloc(1, sizeof(*t));

	if (t) {
		t->columns = columns;
		t->n = n;
	}
	return t;
}

static bool table_grow(struct table *t)
{
	size_t cap = t->cap ? t->cap * 2 : 16;
	char **grown;

	if (t->rows < t->cap)
		return true;
	grown = realloc(t->cells, cap * t->n * sizeof(*grown));
	if (!grown)
		return false;
	t->cells = grown;
	t->cap = cap;
	return true;
}

void table_row(struct table *t, const char *const *cells)
{
	char **row;

	if (t->failed || !table_grow(t)) {
		t->failed = true;
		return;
	}
	row = t->cells + t->rows++ * t->n;
	for (size_t i = 0; i < t->n; i++) {
		row[i] = strdup(cells[i] ? cells[i] : "");
		if (!row[i])
			t->failed = true;
	}
}

static const char *cell(const struct table *t, size_t row, size_t col)
{
	const char *text = t->cells[row * t->n + col];

	return text ? text : "";
}

static size_t column_width(const struct table *t, size_t col)
{
	size_t width = strlen(t->columns[col].title);

	for (size_t r = 0; r < t->rows; r++)
		if (strlen(cell(t, r, col)) > width)
			width = strlen(cell(t, r, col));
	return width;
}

void table_optional(struct table *t, const unsigned *order, size_t n)
{
	t->optional = order;
	t->optionals = n;
}

void table_flow(struct table *t)
{
	t->flow = true;
}

static size_t whole_width(const struct table *t, const size_t *width)
{
	size_t sum = 0;

	for (size_t i = 0; i < t->n; i++)
		if (width[i] != LEFT_OUT)
			sum += width[i] + (sum ? GAP : 0);
	return sum;
}

static bool is_empty(const struct table *t, size_t col)
{
	for (size_t r = 0; r < t->rows; r++)
		if (*cell(t, r, col))
			return false;
	return true;
}

/* First what has nothing to say. */
static void leave_out(const struct table *t, size_t *width, unsigned fit)
{
	bool narrow = fit && whole_width(t, width) > fit;

	for (size_t i = 0; narrow && i < t->n; i++)
		if (is_empty(t, i))
			width[i] = LEFT_OUT;
	for (size_t i = 0; fit && i < t->optionals && whole_width(t, width) > fit; i++)
		width[t->optional[i]] = LEFT_OUT;
}

/*
 * The last column where it does not fit: of a path its end tells most. Other words go on in the
 * terminal's next line.
 */
static void cut_paths(const struct table *t, size_t *width, unsigned fit)
{
	size_t last = t->n - 1, over;

	if (!fit || t->columns[last].right || width[last] == LEFT_OUT ||
	    whole_width(t, width) <= fit)
		return;
	over = whole_width(t, width) - fit;
	if (width[last] >= over + CUT_MIN)
		width[last] -= over;
}

static void print_last(const char *text, size_t width, FILE *out)
{
	size_t len = strlen(text);

	if (len > width && *text == '/')
		fprintf(out, "..%s", text + len - width + 2);
	else
		fputs(text, out);
}

/* One line: pad is written late, so that nothing trails. */
static void print_line(const struct table *t, const size_t *width, const char *const *text,
		       FILE *out)
{
	size_t pad = 0;

	for (size_t i = 0; i < t->n; i++) {
		size_t len = strlen(text[i]), before;

		if (width[i] == LEFT_OUT)
			continue;
		before = t->columns[i].right ? width[i] - len : 0;
		if (len)
			fprintf(out, "%*s", (int)(pad + before), "");
		if (i + 1 == t->n) {
			print_last(text[i], width[i], out);
			break;
		}
		fputs(text[i], out);
		pad = (len ? 0 : pad + before) + width[i] - len - before + GAP;
	}
	putc('\n', out);
}

/* One row as lines of words. */
static int flow_line(const struct table *t, const char *const *text, const struct sink *s)
{
	size_t size = INDENT + 1, used = 0;
	char *words;

	for (size_t i = 0; i < t->n; i++)
		size += strlen(text[i]) + GAP;
	words = malloc(size);
	if (!words)
		return -ENOMEM;
	*words = '\0';
	for (size_t i = 0; i + 1 < t->n; i++)
		if (*text[i])
			used += (size_t)snprintf(words + used, size - used, "%*s%s",
						 used ? (int)GAP : 0, "", text[i]);
	if (used)
		sink_words(s, INDENT, words);
	snprintf(words, size, "%*s%s", (int)INDENT, "", text[t->n - 1]);
	if (*text[t->n - 1])
		sink_words(s, INDENT, words);
	free(words);
	return 0;
}

static int print_one(const struct table *t, const size_t *width, bool flow, const char *const *text,
		     const struct sink *s)
{
	if (flow)
		return flow_line(t, text, s);
	print_line(t, width, text, s->out);
	return 0;
}

int table_print(const struct table *t, const struct sink *s)
{
	size_t *width = calloc(t->n, sizeof(*width));
	const char **line = calloc(t->n, sizeof(*line));
	unsigned fit = sink_width(s);
	bool flow = false;
	int err = t->failed || !width || !line ? -ENOMEM : 0;

	for (size_t i = 0; !err && i < t->n; i++) {
		width[i] = column_width(t, i);
		line[i] = t->columns[i].title;
	}
	if (!err) {
		leave_out(t, width, fit);
		flow = t->flow && fit && whole_width(t, width) > fit;
		cut_paths(t, width, fit);
		fputs(sink_paint(s, PAINT_HEAD), s->out);
		err = print_one(t, width, flow, line, s);
		fputs(sink_plain(s), s->out);
	}
	for (size_t r = 0; !err && r < t->rows; r++) {
		for (size_t i = 0; i < t->n; i++)
			line[i] = cell(t, r, i);
		err = print_one(t, width, flow, line, s);
	}
	free(line);
	free(width);
	return err;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->rows * t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}
