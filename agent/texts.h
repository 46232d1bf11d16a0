// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TEXTS_H
#define HM_TEXTS_H
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "pairs.h"
#include "pool.h"

/* Each text once, numbered from 0 on in the order in which they come. */
struct texts {
	const char **v; /* by number; NUL-terminated */
	size_t n, cap;
	uint32_t *slot;
	size_t slots;
	struct pool *pool; /* the texts; texts_free does not end it */
};

/* The number of text, which is copied. -ENOMEM; -EOVERFLOW beyond 2^31. */
HM_MUST_CHECK int texts_add(struct texts *s, const char *text, uint32_t *number);
void texts_free(struct texts *s);
#endif
