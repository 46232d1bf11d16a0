// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TCMALLOC_H
#define HM_TCMALLOC_H
#include "allocator.h"

/*
 * tcmalloc of gperftools, by the C functions of its MallocExtension or, where only these have
 * names, by the C++ ones; and Google's newer one, whose library has C functions of other names.
 */
extern const struct allocator_ops tcmalloc_ops;

/* What it counts; bytes. */
enum tcmalloc_figure {
	TCM_ALLOCATED,	   /* by the program */
	TCM_HEAP,	   /* address space of its page heap, with what is unmapped */
	TCM_PAGEHEAP_FREE, /* whole spans, which a release returns (those of them with memory) */
	TCM_UNMAPPED,	   /* given back already */
	TCM_THREAD_CACHES, /* free objects in the threads' (or CPUs') caches */
	TCM_CENTRAL,	   /* and between these and the page heap */
	TCM_TRANSFER,
	TCM_CACHE_LIMIT, /* what the caches of all threads may hold */
	TCM_FIGURES,
};
struct tcmalloc_figures {
	uint64_t v[TCM_FIGURES];
	bool known[TCM_FIGURES];
};
/* Asks by one batch of calls; what this build does not count is not known. */
HM_MUST_CHECK int tcmalloc_figures_read(struct process *p, const struct allocator *a,
					struct tcmalloc_figures *out, struct diag *d);
/* It is Google's, whose settings have other names. */
bool tcmalloc_is_google(const struct allocator *a);
#endif
