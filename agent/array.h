// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ARRAY_H
#define HM_ARRAY_H
#include <stddef.h>

#include "../inject/diag.h"

/*
 * Makes room for one more element in v, a realloc(3)ed array of *cap elements of size bytes, n of
 * them in use. Returns where it lies now; NULL without memory: then v is as it was, and the
 * caller's.
 */
HM_MUST_CHECK void *array_room(void *v, size_t *cap, size_t n, size_t size);
#endif
