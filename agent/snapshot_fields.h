// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SNAPSHOT_FIELDS_H
#define HM_SNAPSHOT_FIELDS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What stands in a snapshot: one table that the writer and the reader both go by, so that neither
 * knows a member that the other does not. A member that has its zero value (0, false, "", no list)
 * is left out, unless must is set.
 */
enum field_kind {
	FIELD_BOOL,
	FIELD_SIGNED,	/* of 4 or 8 bytes */
	FIELD_UNSIGNED, /* likewise; more than JSON integers hold is a string of digits */
	FIELD_ADDRESS,	/* uint64_t, "0x7f00" */
	FIELD_REAL,	/* double, 0 or more */
	FIELD_LETTER,	/* char */
	FIELD_TEXT,	/* char[]: printable ASCII */
	FIELD_WORDS,	/* const char *: likewise */
	FIELD_NAME,	/* const char *, any bytes: what is not printable ASCII is \xNN, \ is \\ */
	FIELD_ENUM,	/* by its word */
	FIELD_TIME,	/* struct timespec, "2026-01-31T12:00:00.123456789Z" */
	FIELD_OBJECT,	/* a struct inside of this one */
	FIELD_LIST,	/* a pointer to so many structs as a size_t beside it says */
	FIELD_ARRAY,	/* the same, with the array inside of this one */
	FIELD_ROW,	/* const struct smaps_row *: its place in the list of mappings */
	FIELD_FACTS,	/* struct facts, each under its name */
	FIELD_OPS,	/* const struct allocator_ops *: its name */
};

struct field {
	const char *name; /* NULL ends the table */
	enum field_kind kind;
	bool must;     /* the writer writes it always, the reader wants it */
	size_t offset; /* in the struct */
	size_t size;   /* of the member; of one struct of a list or array */
	size_t count;  /* list, array: offset of the size_t */
	uint64_t max;  /* number: the largest; 0: what fits. enum, array: how many */
	const char *(*word)(unsigned value); /* enum */
	const struct field *sub;	     /* object, list, array */
	const char *none;		     /* FIELD_WORDS: where it is left out */
};

/* Of struct snapshot. */
extern const struct field snapshot_fields[];

/* No number of bytes in a snapshot is larger: sums and differences of them are numbers, too. */
#define FIELD_BYTES_MAX ((uint64_t)1 << 60)
#endif
