// SPDX-License-Identifier: GPL-3.0-or-later
#include "phase.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(const char *) what;
static _Atomic(uint64_t) done, total;

#define SET(where, value) atomic_store_explicit(&(where), value, memory_order_relaxed)
#define GET(where)	  atomic_load_explicit(&(where), memory_order_relaxed)

void phase_begin(const char *text, uint64_t steps)
{
	if (GET(total) && !steps)
		return;
	SET(done, 0);
	SET(total, steps);
	SET(what, text);
}

void phase_step(uint64_t steps)
{
	SET(done, steps);
}

void phase_end(void)
{
	SET(total, 0);
	phase_begin(NULL, 0);
}

struct phase phase_read(void)
{
	return (struct phase){ .what = GET(what), .done = GET(done), .total = GET(total) };
}
