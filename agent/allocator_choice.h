// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ALLOCATOR_CHOICE_H
#define HM_ALLOCATOR_CHOICE_H
#include "process.h"

/*
 * Which of a process's allocators a command is for: p->only is what the operator has named
 * (--allocator), "" for all that are in use. A word names an allocator by what it is ("jemalloc"),
 * by the prefix of its symbols ("_rjem_"), by its file ("plugin.so", or its path), and, where that
 * names several still, by file and prefix with a colon between them ("plugin.so:_rjem_").
 */
bool allocator_is(const struct allocator *a, const char *word);
/* In use, and not left out by p->only. */
bool allocator_asked(const struct process *p, const struct allocator *a);
/* 0 where p->only names one in use, or is ""; else exit 5 "no-such-allocator". */
HM_MUST_CHECK int allocator_choice_check(const struct process *p, struct diag *d);
/*
 * The one of that kind to ask. Of several it is the one that owns malloc, and *others says how many
 * there are beside it; -EINVAL with exit 2 "several-allocators" where none does and p->only names
 * none. -ENOENT, with d untouched, where none is in use.
 */
HM_MUST_CHECK int allocator_choose(const struct process *p, const char *kind,
				   const struct allocator **out, size_t *others, struct diag *d);
/* What allocator_is knows a by and no other one of all, for messages. Returns buf. */
const char *allocator_label(const struct allocators *all, const struct allocator *a, char *buf,
			    size_t size);
#define ALLOCATOR_LABEL 160
#endif
