// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CLOCK_H
#define HM_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

#define NS_PER_MS  1000000ULL
#define NS_PER_SEC 1000000000ULL

uint64_t clock_now(void); /* CLOCK_MONOTONIC, ns */
uint64_t clock_cpu(void); /* CLOCK_PROCESS_CPUTIME_ID, ns: what we have used of a CPU */
void clock_sleep(uint64_t ns);
/*
 * Is clock_now the machine's clock, and not shifted by a time namespace (time_namespaces(7))? Only
 * then do two processes mean the same by it.
 */
bool clock_is_common(void);
#endif
