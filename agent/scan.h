// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SCAN_H
#define HM_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that is read from the front, and belongs to somebody else; it has no NUL behind it. */
struct scan {
	const char *at, *end;
};

/* The next line without its end ("\n", "\r\n"), and without blanks around it; false behind the
 * last. */
bool scan_line(struct scan *s, struct scan *line);
/* Blanks and tabs. Returns whether there were any. */
bool scan_blanks(struct scan *s);
/* Takes word if it stands next. */
bool scan_word(struct scan *s, const char *word);
/* Takes a number in this base, 10 or 16 (then "0x" may stand before it). false where there is none,
 * or one that does not fit: nothing is taken. */
bool scan_number(struct scan *s, unsigned base, uint64_t *out);
static inline size_t scan_left(const struct scan *s)
{
	return (size_t)(s->end - s->at);
}
#endif
