// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OWNERS_READ_H
#define HM_OWNERS_READ_H
#include "../inject/usage.h"
#include "owners.h"
#include "process.h"

/* A process's memory at one time, each byte with its owner. */
struct memory {
	struct smaps smaps;
	struct mounts mounts;
	struct owner_facts facts;
	struct owners owners;
	struct usage usage; /* of smaps_rollup, which is read beside smaps */
	/* usage.rss less what the pieces add up to: what came or went between the two reads */
	int64_t remainder;
};

/*
 * Reads smaps and what tells the owners apart. Nothing is stopped, called or written; memory of the
 * target is read only where it is resident. p must be fresh
 * (process_refresh). The caller ends it with memory_free.
 */
HM_MUST_CHECK int memory_read(const struct process *p, struct memory *out, struct diag *d);
void memory_free(struct memory *m);
#endif
