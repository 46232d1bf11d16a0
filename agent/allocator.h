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
struct allocator_search;

enum linkage { LINK_DYNAMIC, LINK_PRELOAD, LINK_STATIC };

/* What one allocator did when it was asked to give memory back. */
struct trim_part {
	char name[16];
	char version[32];
	char file[128];		     /* of which of several */
	char call[48];		     /* "malloc_trim(0)", "arena.4096.purge" */
	bool no_rc;		     /* it returns nothing */
	long rc;		     /* what the call returned */
	uint64_t duration_ns;	     /* inside the target */
	int64_t returned_bytes;	     /* drop of Rss + Swap measured around this part */
	struct prediction predicted; /* just before */
};

/* The small interface behind which each allocator stands; one constant table per allocator. */
struct allocator_ops {
	const char *name;
	bool callable;	     /* stats and trim make calls; else they only say why not (exit 5) */
	const char *release; /* what trim calls, for people; NULL: known otherwise */
	/*
	 * Fills at most max of v for the allocators of this kind in module mod and returns how many
	 * there are; v is zeroed but for mod and linkage. Called for every module. Only reads. Sets
	 * owns_malloc where no symbol could tell, and in_use where that is known otherwise.
	 */
	size_t (*detect)(const struct process *p, const struct module *mod,
			 struct allocator_search *s, struct allocator *v, size_t max);
	/* The allocator's own text. *text is malloc'ed and the caller's. args: command arguments,
	 * may be empty. */
	int (*stats)(struct process *p, const struct allocator *a, int argc, char **argv,
		     char **text, struct diag *d);
	/* What trim would return, found out without a call; NULL where nobody knows how. What is
	 * not known is no error. */
	int (*predict)(struct process *p, const struct allocator *a, uint64_t pad,
		       struct prediction *out, struct diag *d);
	/* Gives memory back; pad is malloc_trim's. Fills call, rc (or no_rc) and duration_ns of
	 * part, and predicted where only a call could tell. */
	int (*trim)(struct process *p, const struct allocator *a, uint64_t pad,
		    struct trim_part *part, struct diag *d);
};

/* Can it be called? */
enum allocator_reach {
	ALLOCATOR_CALLABLE,
	ALLOCATOR_NO_SYMBOL,	/* it is there, but its functions have no names any more */
	ALLOCATOR_NO_CODE,	/* its symbols lead to what is no code of its file */
	ALLOCATOR_NOTHING_ELSE, /* nothing but its symbols is what it should be */
	ALLOCATOR_STRANGE,	/* by names that a thread's backtrace is not looked through for */
	ALLOCATOR_APART,	/* in another namespace of the dynamic linker (dlmopen) */
};

struct allocator {
	const struct allocator_ops *ops;
	const struct module *mod; /* NULL in a snapshot */
	char file[128];		  /* path of mod, escaped; of a long one its end */
	char version[32];	  /* "" if only a call could tell */
	char prefix[24];	  /* "", "je_", "_rjem_" ... */
	bool owns_malloc;	  /* plain malloc of the target reaches it */
	bool in_use;		  /* it owns malloc, or something else reaches it */
	enum allocator_reach reach;
	enum linkage linkage;
};

#define MAX_ALLOCATORS 16
struct allocators {
	struct allocator v[MAX_ALLOCATORS];
	size_t n;
	size_t more; /* for which there was no room: less in use than these, or later */
};

/* What the search for them knows and may spend. */
struct allocator_search {
	const struct module *owner; /* whose malloc a plain reference reaches, or NULL */
	const struct module *glibc;
	size_t budget; /* bytes of files that may still be read */
};

extern const struct allocator_ops glibc_ops;
extern const struct allocator_ops jemalloc_ops;

/*
 * Who owns malloc: by the first definition of malloc in the target's link order, never by a name in
 * the maps. An allocator that is mapped but not reached has in_use false and is not called.
 */
int allocators_find(const struct process *p, struct allocators *out, struct diag *d) HM_MUST_CHECK;
/* The one of that name that is in use: the one that owns malloc before others, those that can be
 * called before those that cannot. NULL without one. */
const struct allocator *allocators_get(const struct allocators *v, const char *name);
const char *linkage_name(enum linkage l);
const char *allocator_reach_name(enum allocator_reach r);
/* The last part of its file's path. */
const char *allocator_base(const struct allocator *a);
/* It is one that can be called, and is in use. */
bool allocator_callable(const struct allocator *a);
#endif
