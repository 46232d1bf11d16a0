// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SCHEMA_H
#define HM_SCHEMA_H
#include <stdbool.h>
#include <stddef.h>

/*
 * The keys of --json, for heapmedic-json(5) and for the test that compares them with what is
 * printed. A key that a command prints and that is not here fails that test, and so does one that
 * is here and never seen.
 */
struct schema_key {
	const char *of;	 /* a command; "*": the envelope; "+NAME": keys that several have */
	const char *key; /* a path: "rows[].owner"; .* is any name, and what stands there */
	/*
	 * bytes count us ms index (integers), seconds number fraction, text word time address,
	 * bool, list, object, any. "bytes?" may be null, "~bytes" is there only sometimes, "+NAME":
	 * in place of this one those keys, below it.
	 */
	const char *type;
	const char *meaning;
};

/* Calls each for all keys of a command ("*": of the envelope), with those of groups in their place.
 */
void schema_each(const char *of, void (*each)(const struct schema_key *key, void *arg), void *arg);
/* The i-th of what keys belong to, commands and "*", NULL behind the last. */
const char *schema_of(size_t i);
#endif
