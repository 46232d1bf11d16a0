// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_REGION_H
#define HM_REGION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "maps.h"
#include "payload/abi.h"

/*
 * Where our memory lies in the target. The address is chosen by us (MAP_FIXED_NOREPLACE), so that
 * everything can be prepared before a thread is held, and so that what a killed run leaves behind
 * is recognised even if it died before the mapping got its name: half of the address's free bits
 * are a check of the other half.
 */
struct region {
	uint64_t base, size;
	uint64_t text_len;
	uint64_t stack, stack_len;
	uint64_t block;
	uint64_t scratch, scratch_len;
	uint64_t out, out_len;
	uint64_t guard;		     /* 0 in direct mode */
	uint64_t pstack, pstack_len; /* 0 in direct mode */
};

#define REGION_MAX ((uint64_t)4 << 20)

/* Pure: lays the region out at base. tls is the room the proxy's stack needs for thread-local
 * storage. */
void region_layout(struct region *r, uint64_t base, enum hm_mode mode, size_t text, size_t scratch,
		   size_t tls);
/* A free address with a valid check, random; 0 if there is none or size is over REGION_MAX (never
 * seen). */
uint64_t region_choose(const struct maps *maps, uint64_t size);
/* Pure: is this a mapping of ours (by name or address)? *base is the region it belongs to. */
bool region_owns(const struct map *m, uint64_t *base);
#endif
