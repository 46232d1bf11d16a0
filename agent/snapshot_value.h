// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SNAPSHOT_VALUE_H
#define HM_SNAPSHOT_VALUE_H
#include <jansson.h>

#include "snapshot.h"
#include "snapshot_fields.h"

/* Single values of a snapshot that is read, each taken for hostile. v may be NULL: it is missing.
 */
struct parser {
	struct snapshot *s;
	const char *name; /* of the file, for messages */
	char where[160];  /* "look.memory.pieces[3].owner" */
	size_t len;
	struct diag *d;
};

/* Fills d with exit 2, the file and the place in it. Returns -EINVAL. */
int value_wrong(const struct parser *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int value_no_memory(const struct parser *r); /* -ENOMEM, exit 10 */
/* The place is one member further in; what it returns takes value_leave back to where it was. */
size_t value_enter(struct parser *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void value_leave(struct parser *r, size_t before);

/* Of these digits and nothing else, and not too large. */
bool value_digits(const char *text, const char *digits, int base, uint64_t *out);

/*
 * 0, or d is filled: the value is of another kind, or out of range. Texts are printable ASCII, and
 * cut where there is no room; a name may come out as any bytes. Strings are the pool's.
 */
HM_MUST_CHECK int value_unsigned(struct parser *r, const json_t *v, uint64_t max, uint64_t *out);
HM_MUST_CHECK int value_real(struct parser *r, const json_t *v, double max, double *out);
HM_MUST_CHECK int value_bool(struct parser *r, const json_t *v, bool *out);
HM_MUST_CHECK int value_text(struct parser *r, const json_t *v, char *buf, size_t size);
HM_MUST_CHECK int value_words(struct parser *r, const json_t *v, const char **out);
HM_MUST_CHECK int value_name(struct parser *r, const json_t *v, const char **out);
HM_MUST_CHECK int value_letter(struct parser *r, const json_t *v, char *out);
HM_MUST_CHECK int value_time(struct parser *r, const json_t *v, struct timespec *out);
/* One of n words, by its number. */
HM_MUST_CHECK int value_word(struct parser *r, const json_t *v, const char *(*word)(unsigned),
			     uint64_t n, unsigned *out);
/* Numbers and addresses, of the width and range that f says. */
HM_MUST_CHECK int value_put_unsigned(struct parser *r, const struct field *f, const json_t *v,
				     void *at);
HM_MUST_CHECK int value_put_signed(struct parser *r, const struct field *f, const json_t *v,
				   void *at);
#endif
