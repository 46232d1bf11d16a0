// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_HOTSPOT_H
#define HM_HOTSPOT_H
#include <stdint.h>
#include <sys/types.h>

#include "../inject/modules.h"
#include "../inject/reader.h"

/* Where HotSpot keeps things; a range that could not be read is 0 to 0. */
struct hotspot {
	uint64_t heap_lo, heap_hi; /* all that is reserved for the Java heap */
	uint64_t code_lo, code_hi; /* the code cache */
};

/*
 * Reads it from the description that libjvm exports for its serviceability agent (vmStructs.hpp,
 * gHotSpotVMStructs and the layout words beside it): JDK 9 and newer. Nothing is called: what is
 * constant is read from mod's file, what the JVM writes through r. -ENOENT if mod is not HotSpot; 0
 * also if a range is missing.
 */
HM_MUST_CHECK int hotspot_read(pid_t pid, const struct reader *r, const struct module *mod,
			       struct hotspot *out);
#endif
