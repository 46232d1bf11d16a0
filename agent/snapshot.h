// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SNAPSHOT_H
#define HM_SNAPSHOT_H
#include <time.h>

#include "jemalloc_arenas.h"
#include "look.h"
#include "thread_rows.h"

/*
 * All that the looking commands need to know of a process at one time, for a file: one JSON object
 * of the schema below, compressed as gzip does. There is nothing in it that a program has stored on
 * its heap: addresses, sizes and counts, and the names of mappings (paths), threads and the host.
 */
#define SNAPSHOT_SCHEMA "heapmedic-snapshot/"
#define SNAPSHOT_FORMAT 1

struct snapshot {
	struct timespec time;	    /* CLOCK_REALTIME */
	char version[32];	    /* of the heapmedic that took it */
	char host[72], kernel[136]; /* as uname(2) says */
	char boot[40];		    /* boot_id of the host; "" if it is not known */
	pid_t pid;		    /* as the one who took it counts */
	uint64_t start_time; /* clock ticks since that boot: with pid and boot it is one process */
	char comm[64];	     /* escaped */
	struct allocators allocs; /* without their modules */
	struct diag no_arenas;	  /* why glibc's arenas are not in look, where it is not in use */
	struct look look;
	struct jemalloc_arenas jemalloc_arenas; /* none where it was not asked */
	struct thread_rows threads;
	struct pool *pool; /* of one that was read: its strings */
};

/*
 * Takes one: see look_take and thread_rows_read. p must be fresh (process_refresh). 0, and then the
 * caller ends *out with snapshot_free before p is refreshed; else with d.
 */
HM_MUST_CHECK int snapshot_take(struct process *p, bool may_call, struct snapshot *out,
				struct diag *d);
void snapshot_free(struct snapshot *s);
/* Are both of one process? The same pid, started at the same time of the same boot. */
bool snapshot_same_process(const struct snapshot *a, const struct snapshot *b);

/* Pure: the file's bytes, for the caller to free. -ENOMEM. */
HM_MUST_CHECK int snapshot_encode(const struct snapshot *s, unsigned char **out, size_t *len);
/*
 * Pure: the other way round. The input may be anything: the text is bounded
 * (SNAPSHOT_TEXT_MAX bytes, and what jansson makes of it by SNAPSHOT_TREE_MAX). name is the file's,
 * for d: exit 2, and which member is wrong; exit 10 without memory. The caller ends *out with
 * snapshot_free where 0 is returned.
 */
HM_MUST_CHECK int snapshot_decode(const unsigned char *bytes, size_t len, const char *name,
				  struct snapshot *out, struct diag *d);
/* The same of the text as it is when it is no more compressed. */
HM_MUST_CHECK int snapshot_parse(const char *text, size_t len, const char *name,
				 struct snapshot *out, struct diag *d);
#define SNAPSHOT_TEXT_MAX ((size_t)256 << 20)
#define SNAPSHOT_TREE_MAX ((size_t)2 << 30)

/* snapshot_decode of a file, "-" is no name here. Exit 2 where it cannot be read. */
HM_MUST_CHECK int snapshot_load(const char *path, struct snapshot *out, struct diag *d);
/*
 * Writes bytes to path as outfile_save does: what is there is replaced by the finished file, if it
 * is a snapshot or force is set, and a regular file in any case. Exit 1 where it cannot be written,
 * 2 where it may not be replaced; nothing is left behind then.
 */
HM_MUST_CHECK int snapshot_save(const char *path, const unsigned char *bytes, size_t len,
				bool force, struct diag *d);
/* Would it? Exit 1 or 2; nothing is written. */
HM_MUST_CHECK int snapshot_place(const char *path, bool force, struct diag *d);
#endif
