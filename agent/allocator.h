// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ALLOCATOR_H
#define HM_ALLOCATOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/modules.h"
#include "../inject/session.h"
#include "prediction.h"

struct process;
struct allocator;

enum linkage { LINK_DYNAMIC, LINK_PRELOAD, LINK_STATIC };

/* What one allocator did when it was asked to give memory back. */
struct trim_part {
	char name[16];
	char version[32];
	char call[48];		     /* "malloc_trim(0)", "arena.4096.purge" */
	long rc;		     /* what the call returned */
	uint64_t duration_ns;	     /* inside the target */
	int64_t returned_bytes;	     /* drop of Rss + Swap measured around this part */
	struct prediction predicted; /* just before */
};

/* The small interface behind which each allocator stands; one constant table per allocator. */
struct allocator_ops {
	const char *name;
	bool callable; /* stats and trim make calls; else they only say why not (exit 5) */
	/*
	 * Fills a for an allocator of this kind in module mod and returns 1, or 0 if it is not
	 * there. Called for every module. Only reads. Sets owns_malloc where no symbol could tell.
	 */
	int (*detect)(const struct process *p, const struct module *mod, struct allocator *a);
	/* The allocator's own text. *text is malloc'ed and the caller's. args: command arguments,
	 * may be empty. */
	int (*stats)(struct process *p, const struct allocator *a, int argc, char **argv,
		     char **text, struct diag *d);
	/* What trim would return, found out without a call; NULL where nobody knows how. What is
	 * not known is no error. */
	int (*predict)(struct process *p, const struct allocator *a, uint64_t pad,
		       struct prediction *out, struct diag *d);
	/* Gives memory back; pad is malloc_trim's. Fills call, rc and duration_ns of part. */
	int (*trim)(struct process *p, const struct allocator *a, uint64_t pad,
		    struct trim_part *part, struct diag *d);
};

struct allocator {
	const struct allocator_ops *ops;
	const struct module *mod;
	char version[32]; /* "" if only a call could tell */
	char prefix[16];  /* "", "je_", "_rjem_" ... */
	bool owns_malloc; /* plain malloc of the target reaches it */
	bool in_use;	  /* it owns malloc, or is reachable under a prefix */
	enum linkage linkage;
};

#define MAX_ALLOCATORS 8
struct allocators {
	struct allocator v[MAX_ALLOCATORS];
	size_t n;
};

extern const struct allocator_ops glibc_ops;
extern const struct allocator_ops jemalloc_ops;

/*
 * Who owns malloc: by the first definition of malloc in the target's link order, never by a name in
 * the maps. An allocator that is mapped but not reached has in_use false and is not called.
 */
int allocators_find(const struct process *p, struct allocators *out, struct diag *d) HM_MUST_CHECK;
/* The one of that name that is in use, or NULL. */
const struct allocator *allocators_get(const struct allocators *v, const char *name);
const char *linkage_name(enum linkage l);
#endif
