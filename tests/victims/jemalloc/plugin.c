// SPDX-License-Identifier: GPL-3.0-or-later
/* A library with a jemalloc of its own, for host.c to open. */
#include "heap.h"

__attribute__((visibility("default"))) int plugin_churn(void)
{
	return heap_churn();
}

int plugin_fill(int mib);
__attribute__((visibility("default"))) int plugin_check(void);
__attribute__((visibility("default"))) int plugin_churn(void);

int plugin_fill(int mib)
{
	return heap_fill(mib);
}

int plugin_check(void)
{
	return heap_check();
}
