// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_DETECT_H
#define HM_JEMALLOC_DETECT_H
#include "allocator.h"
#include "jemalloc_signs.h"

/*
 * The jemallocs in mod: by its mallctl, whose name a build may prefix; one module can hold several
 * of different prefixes. Where there is no such symbol, but the strings of the file are jemalloc's,
 * its separate debug file is asked, and after that it is found all the same, though nothing in it
 * can be called. Fills at most max of v and returns how many. Only reads, at most s->budget bytes.
 */
size_t jemalloc_detect(const struct process *p, const struct module *mod,
		       struct allocator_search *s, struct allocator *v, size_t max);
/* A process without a jemalloc that was found so, but with mappings that jemalloc has named (built
 * with --enable-pageid, 5.3.1): it is in the program or one of its libraries. Fills *out. */
bool jemalloc_detect_by_maps(const struct process *p, struct allocator *out);
#endif
