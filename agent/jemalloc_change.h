// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_CHANGE_H
#define HM_JEMALLOC_CHANGE_H
#include "../inject/usage.h"
#include "jemalloc_arenas.h"

/* Purges and decay times, with what they have done: measured from outside, and in jemalloc's books.
 */
struct jemalloc_effect {
	struct usage before, after;
	int64_t returned_bytes; /* drop of Anonymous + Swap; may be negative */
	uint64_t minflt_delta;
	/* jemalloc's sums over the arenas concerned, each just before and after: */
	struct jemalloc_arena was, now;
	char call[48];
	uint64_t duration_ns; /* inside the target */
	const char *via;      /* "proxy" or "direct" */
	struct held held;
};

/*
 * Purges arena index, or all that are initialised (JEMALLOC_ALL). Exit 1 for one that is not:
 * jemalloc itself would do nothing for it, and nothing for a number that it has no arena for is not
 * sure (its own number of arenas means all of them).
 */
HM_MUST_CHECK int jemalloc_purge_measured(struct process *p, const struct allocator *a, long index,
					  struct jemalloc_effect *out, struct diag *d);

enum decay_kind { DECAY_DIRTY, DECAY_MUZZY, DECAY_KINDS };
enum decay_place {
	DECAY_DEFAULT, /* arenas.*_decay_ms: of arenas made later */
	DECAY_ONE,     /* one that is initialised */
	DECAY_ALL,     /* the default and each that is initialised */
};
const char *decay_kind_name(enum decay_kind k); /* "dirty" */

struct decay_row {
	int64_t index; /* -1: the default */
	bool huge;     /* the automatic arena for large blocks */
	bool left;     /* it was not changed */
	int rc;	       /* of the write, 0 if it was made */
	bool known;    /* old is */
	int64_t old;
};
struct decay_change {
	enum decay_kind kind;
	int64_t ms;
	uint64_t threshold; /* of the huge arena */
	struct decay_row *v;
	size_t n;
	struct jemalloc_effect effect;
};
/*
 * Sets the decay time. DECAY_ALL leaves the huge arena out: it has none by design (its pages go
 * back at once), and a time would need a thread of jemalloc's for it. The caller ends *out with
 * decay_change_free. What mallctl refuses for single arenas is in their rows; exit 1 where it
 * refused all of it.
 */
HM_MUST_CHECK int jemalloc_decay(struct process *p, const struct allocator *a, enum decay_kind kind,
				 enum decay_place place, uint32_t index, int64_t ms,
				 struct decay_change *out, struct diag *d);
void decay_change_free(struct decay_change *c);
/* The defaults, -1 never; *known[k] false where this jemalloc has no such name. */
HM_MUST_CHECK int jemalloc_decay_defaults(struct process *p, const struct allocator *a,
					  int64_t ms[DECAY_KINDS], bool known[DECAY_KINDS],
					  struct diag *d);
#endif
