// SPDX-License-Identifier: GPL-3.0-or-later
#include "array.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST 64

void *array_room(void *v, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap ? *cap * 2 : FIRST;
	void *grown;

	if (n < *cap)
		return v;
	if (*cap > SIZE_MAX / 2)
		return NULL;
	grown = reallocarray(v, more, size);
	if (grown)
		*cap = more;
	return grown;
}
