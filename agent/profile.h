// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROFILE_H
#define HM_PROFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "pool.h"

/*
 * A heap profile as jemalloc dumps it: which stacks have allocated what is sampled. The formats are
 * heap_v2 of jemalloc 4 and later (a line for all threads and one for each below "@ PC..."), the
 * one-line records of jemalloc 3 and gperftools ("heap profile: ... @ heap_v2/PERIOD", "@
 * heapprofile"), and jeprof's symbolised form of each, with a "--- symbol" section before it.
 */

/* Objects and bytes that the samples stand for. all_: what was freed since counts too (prof_accum).
 */
struct profile_count {
	double live_objects, live_bytes, all_objects, all_bytes;
};

/* One line of the mappings that a dump ends with; only those with a name. */
struct profile_map {
	uint64_t start, end, offset; /* [start, end); offset in the file, bytes */
	uint64_t inode;		     /* of the file; 0: the dump does not say */
	const char *path;
	const char *build_id; /* hex; NULL: the dump does not say */
	bool exec;
	bool deleted; /* the file had no name any more, or another file had it */
};

struct profile_stack {
	const uint64_t *pc; /* as they stand in the dump: innermost first, all but the first are
			       return addresses */
	uint32_t depth;
	struct profile_count n;
};

/* An address of the symbol section, as profile_lookup gives it. */
struct profile_name {
	uint64_t pc;
	const char *names; /* outermost first, "--" between functions that were inlined */
};

struct profile {
	uint64_t sample_bytes; /* bytes between two samples, on average; up to 1: each one is there
				*/
	bool has_accum;	       /* the all_ numbers are counted */
	struct profile_stack *stack;
	size_t stacks;
	struct profile_count total; /* of all stacks */
	struct profile_map *map;    /* by address, none overlaps the next */
	size_t maps;
	struct profile_name *name; /* by address; none unless the file is symbolised */
	size_t names;
	const char *binary; /* that the symbol section names; NULL */
	size_t odd;	    /* records that are none, left out */
	bool cut;	    /* it ends in the middle of a record, or before its mappings */
	struct pool *pool;  /* all of the above */
};

/* Deeper stacks are no records: jemalloc keeps 128 frames unless built for more. */
#define PROFILE_DEPTH 4096
/*
 * Longer text is refused, and more of each kind of record, which may be shorter than the memory
 * that it takes. Frames of all stacks: more than so much text of real addresses has.
 */
#define PROFILE_TEXT_MAX   ((size_t)256 << 20)
#define PROFILE_STACKS_MAX ((size_t)1 << 21)
#define PROFILE_FRAMES_MAX ((size_t)1 << 25)
#define PROFILE_NAMES_MAX  ((size_t)1 << 21)
#define PROFILE_MAPS_MAX   ((size_t)1 << 20)

/*
 * Pure: a dump of any of the forms above. Each record is unbiased, then they are summed. What it
 * takes of memory is in proportion to len. data is not needed afterwards. Exit 2: "no-profile"
 * where it is none, "profile-period" where its sample period cannot be, "profile-too-large";
 * -ENOMEM, exit
 * 10. The caller ends *out with profile_free.
 */
HM_MUST_CHECK int profile_parse(const char *data, size_t len, struct profile **out, struct diag *d);
void profile_free(struct profile *p);
/* "the profile has more than MOST WHAT", exit 2. -E2BIG. */
int profile_too_large(struct diag *d, size_t most, const char *what);

/*
 * What sampled objects stand for, of the same number of bytes each, where an allocation of z bytes
 * is sampled with the probability 1 - exp(-z / period): pprof's and jeprof's rule for heap_v2, and
 * what jemalloc expects of its readers (5.3 and later shift their numbers so that it is right).
 */
void profile_unbias(uint64_t objects, uint64_t bytes, uint64_t period, double *objects_out,
		    double *bytes_out);

/*
 * Where frame i of a stack was: one byte before a return address lies in the call. The innermost
 * frame is looked up as it is, as jeprof does.
 */
static inline uint64_t profile_lookup(const struct profile_stack *s, uint32_t i)
{
	return s->pc[i] - (i > 0 && s->pc[i] > 0);
}

/* The mapping that holds pc, NULL if none is known. */
const struct profile_map *profile_map_find(const struct profile *p, uint64_t pc);
/* What the symbol section says of an address of profile_lookup, NULL where it says nothing. */
const char *profile_names_find(const struct profile *p, uint64_t pc);
/* To whole numbers; what is too large for a signed one is its largest. */
uint64_t profile_round(double v);
#endif
