// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SINK_H
#define HM_SINK_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "../agent/size.h"
#include "../inject/diag.h"
#include "settings.h"

/* Where answers go: data to out, talk to err. */
struct sink {
	FILE *out, *err;
	bool color;	 /* of out; decided: not a wish any more */
	bool color_err;	 /* of err */
	int write_error; /* errno of the first failed write to out, 0 if none */
	/* while text is held back: where out goes otherwise, and what it is so far */
	FILE *terminal;
	char *held;
	size_t held_len;
};

/* Decides about colour: on a terminal that can, without NO_COLOR (no-color.org), unless told. */
void sink_init(struct sink *s, FILE *out, FILE *err, enum color_when color);
/* Decides about colour anew. */
void sink_color(struct sink *s, enum color_when color);
/*
 * Keeps what is written to out back until sink_release, which returns it (the caller's to free;
 * NULL where nothing is held). Where there is no memory for it, it is not held.
 */
void sink_hold(struct sink *s);
char *sink_release(struct sink *s, size_t *len);
/* Is what out shows, in the end, a terminal? */
bool sink_is_terminal(const struct sink *s);
/* Where talk goes: err, or out while that is held back and both are terminals, so that it stands
 * where it was said. */
FILE *sink_talk(const struct sink *s);
/*
 * Flushes out and remembers the first error (EPIPE, ENOSPC): a full disk must not look like an
 * answer. Returns 0 or that error, negative, now and ever after.
 */
int sink_flush(struct sink *s);

enum paint { PAINT_GOOD, PAINT_BAD, PAINT_WARN, PAINT_HEAD };
/* The escape sequence that begins this paint, and the one that ends any; "" without colour. */
const char *sink_paint(const struct sink *s, enum paint p);
const char *sink_plain(const struct sink *s);
/* The same for what goes to err. */
const char *sink_paint_err(const struct sink *s, enum paint p);
const char *sink_plain_err(const struct sink *s);

/*
 * How many columns out has, 0 where it is no terminal: then nothing is left out or broken, so that
 * whoever reads it later finds it whole. Asked anew each time: a window changes.
 */
unsigned sink_width(const struct sink *s);
/* One line of parts with ", " between them; in a narrow terminal it goes on below, indented. */
void sink_parts(const struct sink *s, const char *const *parts, size_t n);
/* One line of text; in a narrow terminal it is broken between words, and goes on below with so many
 * blanks before it. */
void sink_words(const struct sink *s, unsigned indent, const char *text);

/* Text of the target: control characters other than newline and tab, and bytes that are not
 * ASCII, come out escaped, so that no target can drive the operator's terminal. */
void sink_text(FILE *out, const char *text, size_t len);

/* Units with one decimal, or plain bytes. buf is returned. */
const char *text_size(char buf[SIZE_TEXT], uint64_t bytes, bool raw);
/* For the line of a trim: finer, and a difference with its sign: "-3.44 GiB", "+12.0 KiB", "0 B".
 */
const char *text_size_fine(char buf[SIZE_TEXT], uint64_t bytes, bool raw);
const char *text_delta(char buf[SIZE_TEXT], int64_t bytes, bool raw);

/* ---- tables: cells are copied; columns as wide as their widest cell */
struct column {
	const char *title;
	bool right; /* numbers */
};
struct table;
struct table *table_new(const struct column *columns, size_t n); /* NULL: no memory */
/* cells: as many as columns, NULL is "". An allocation that fails is remembered. */
void table_row(struct table *t, const char *const *cells);
/* Where the terminal is too narrow, columns are left out in this order until the table fits.
 * order must stay valid. */
void table_optional(struct table *t, const unsigned *order, size_t n);
/* Where it is still too narrow, each row becomes its cells one after another, and below them the
 * last column, as lines of words. */
void table_flow(struct table *t);
/* Where it is too narrow: columns without any cell are left out first, and of a path in the last
 * one only its end is shown. -ENOMEM if a row is missing, else 0. Trailing blanks are never
 * written. */
HM_MUST_CHECK int table_print(const struct table *t, const struct sink *s);
void table_free(struct table *t);

/* ---- JSON */
/* Any bytes as a JSON string: what is not UTF-8 is replaced by U+FFFD. NULL: no memory. */
/* Length of the UTF-8 sequence at s (RFC 3629: no overlong forms, no surrogates), 0 if it is none.
 */
size_t utf8_length(const unsigned char *s, size_t left);
json_t *json_text(const char *text, size_t len);
/* The object in one line without its end, and without a byte that a terminal obeys. NULL: no
 * memory, or o is NULL. The caller frees it. */
char *json_line(const json_t *o);
/* Numbers that a signed 64-bit integer cannot hold become a real number. */
json_t *json_u64(uint64_t v);
/* "2026-01-31T12:00:00.123Z" */
json_t *json_time(const struct timespec *t);

struct envelope {
	struct timespec time;
	pid_t pid;	     /* 0: null */
	const char *comm;    /* NULL: null */
	const char *command; /* NULL: null */
	enum hm_exit exit;
	json_t *result;	      /* borrowed; NULL: {} */
	json_t *warnings;     /* borrowed; NULL: [] */
	const struct diag *d; /* where exit is not 0 */
};
/* The one object per command and target, keys in the order that the manual gives. NULL: no memory.
 */
json_t *envelope_json(const struct envelope *e);
/* Writes it as one line. -ENOMEM; write errors show in sink_flush. */
HM_MUST_CHECK int sink_envelope(struct sink *s, const struct envelope *e);

/* One line on err: "heapmedic: TEXT; next: HINT" (or "ORIGIN: TEXT; next: HINT"). */
void sink_error(struct sink *s, const char *origin, const struct diag *d);
#endif
