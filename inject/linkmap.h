// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LINKMAP_H
#define HM_LINKMAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

/* One entry of the dynamic linker's list of loaded objects (struct link_map of <link.h>). */
struct linkmap_entry {
	uint64_t addr;	 /* of the entry itself */
	uint64_t l_addr; /* bias */
	uint64_t l_name; /* address of the path */
	uint64_t l_ld;	 /* address of the object's dynamic section */
	unsigned ns;	 /* 0 is the base namespace, others were made by dlmopen */
};

struct linkmap {
	struct linkmap_entry *v;
	size_t n;
};

/* Address of struct r_debug, from DT_DEBUG of the program's dynamic section in memory; 0 as long as
 * the dynamic linker has not filled it. -ENOENT if there is no such entry. */
HM_MUST_CHECK int linkmap_find(pid_t pid, uint64_t dynamic, uint64_t size, uint64_t *r_debug);
/*
 * Is the dynamic linker at work on the list? Then objects are missing in it: at the start of a
 * program all of them until its libraries are mapped and relocated (r_state of <link.h>; in
 * glibc's ld.so it is RT_CONSISTENT again just before the first constructor runs). r_debug as from
 * linkmap_find. False also where the memory cannot be read.
 */
bool linkmap_is_changing(pid_t pid, uint64_t r_debug);
/*
 * All entries, namespace by namespace, each in link order. The list may change while it is read: it
 * is then cut where it became unreadable. Bounded, so that a loop ends. -ENOENT for an empty list.
 */
HM_MUST_CHECK int linkmap_read(pid_t pid, uint64_t r_debug, struct linkmap *out);
void linkmap_free(struct linkmap *lm);
#endif
