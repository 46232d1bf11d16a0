// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_SIGNS_H
#define HM_JEMALLOC_SIGNS_H
#include <stdbool.h>
#include <stddef.h>

#include "../inject/diag.h"

/* What the bytes of a file tell of a jemalloc in it. */
struct jemalloc_signs {
	bool messages;	  /* it has jemalloc's messages */
	bool conf;	  /* and the name of its environment variable, which tells */
	char prefix[24];  /* the prefix of its symbols: of MALLOC_CONF "", of _RJEM_MALLOC_CONF
			     "_rjem_" */
	char version[32]; /* as jemalloc_version_shorten has it, or "" */
};

/* The longest piece of text that is looked for, with its NUL. */
#define JEMALLOC_SIGN_MAX 64
/*
 * Pure: adds what is in data. Of each kind the first one counts, but a prefix before none; what
 * begins before data or ends behind it is not found: give pieces that overlap by JEMALLOC_SIGN_MAX.
 */
void jemalloc_signs_add(const char *data, size_t len, struct jemalloc_signs *s);
/*
 * Pure: finds in data what `git describe` says of a build from a release or from git
 * ("5.3.0-0-g54eaed1d..."), and shortens it into buf: "5.3.0", or "5.3.0-113" for a build 113
 * commits later. -ENOENT. A string that starts before data or ends behind it is not found.
 */
HM_MUST_CHECK int jemalloc_version_find(const char *data, size_t len, char *buf, size_t size);
/* Pure: shortens what mallctl "version" says in the same way; other text is copied. */
void jemalloc_version_shorten(const char *text, char *buf, size_t size);
#endif
