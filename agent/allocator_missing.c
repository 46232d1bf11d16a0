// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_missing.h"

#include <errno.h>

#include "jemalloc_missing.h"

int allocator_unreachable(const struct allocator *a, struct diag *d)
{
	if (a->ops == &jemalloc_ops)
		return jemalloc_unreachable(a, d);
	return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol",
			 "leave it its symbol table: strip --strip-debug",
			 "%s%s%s is in %s, but none of its functions has a name: it was stripped",
			 a->ops->name, a->version[0] ? " " : "", a->version, a->file);
}
