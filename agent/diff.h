// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DIFF_H
#define HM_DIFF_H
#include "growth.h"
#include "snapshot.h"

/* What has changed from one snapshot to another. Bytes are resident and swapped ones. */

struct diff_row {
	enum owner owner;
	const char *kind;	     /* of the owner's: see owner_row */
	const struct owner_row *row; /* the later one, or the one that is gone */
	uint64_t before, after;
	int64_t delta;
};

/* One of glibc's arenas: found again by its address. */
struct diff_arena {
	const struct glibc_arena_plan *before, *after; /* NULL: it was not, or is not there */
	int64_t system, in_use, free, free_resident;
};

struct diff_thread {
	const struct thread_row *row;
	bool gone; /* else it is new */
};

struct diff {
	double seconds; /* from a to b; negative where b is the earlier one */
	bool same;	/* they are of one process */
	struct owner_table tables[2];
	struct diff_row *row; /* largest growth first */
	size_t rows;
	struct diff_row total;	  /* of RSS and swap; owner, kind and row are not used */
	bool glibc;		  /* its heap is known in both: the arenas are valid */
	struct diff_arena *arena; /* largest change first */
	size_t arenas;
	struct diff_arena all;	    /* the sums; not known in the middle of a change */
	struct diff_thread *thread; /* the new ones, then those that are gone */
	size_t threads, fresh, gone;
	bool caches; /* all threads' caches are known in both */
	uint64_t cache_before, cache_after;
	enum growth growth;
	char text[GROWTH_TEXT];
};

/* Pure. a and b must stay as they are until diff_free. -ENOMEM. */
HM_MUST_CHECK int diff_make(const struct snapshot *a, const struct snapshot *b, struct diff *out);
void diff_free(struct diff *f);
#endif
