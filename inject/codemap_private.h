// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CODEMAP_PRIVATE_H
#define HM_CODEMAP_PRIVATE_H
#include <stddef.h>
#include <stdint.h>

#include "codemap.h"
#include "codemap_text.h"

/* Shared by codemap.c (asking) and codemap_build.c. */
#define SPANS_MAX 256

/* One module's code. Its kinds are constant from one cut to the next. */
struct span {
	uint64_t lo, hi;
	uint64_t *cut; /* sorted; cut[0] == lo */
	unsigned char *kind;
	size_t n, cap;
	struct code_text text; /* its bytes, where they could be read */
};

struct range {
	uint64_t lo, hi;
};

struct code_map {
	uint64_t lo, hi;
	struct span v[SPANS_MAX]; /* by address */
	size_t n;
	struct range exempt[CODE_EXEMPT_MAX];
	size_t n_exempt;
};
#endif
