// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef TORTURE_SUBJECT_H
#define TORTURE_SUBJECT_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../live/victim.h"

/*
 * A process of a real program, under load, that many sessions are held with. As in tests/live,
 * nothing here returns an error: harm fails the test.
 */
struct subject {
	struct victim v;	     /* only v.pid is used of a child of the program */
	const char *name;	     /* for what is said about it */
	const char *const *commands; /* what is done in turn, words divided by a blank; NULL ends */
	enum state_freedom freedom;
	/* filled in by subject_begin */
	struct state before;
	char start_time[32];
	unsigned sessions, refused; /* exit 6: no safe point */
	uint64_t longest_ns;	    /* of a whole run, and of what */
	const char *longest;
	char reason[256]; /* what the last refusal said */
};

/* trim, stats, info and now and then check, threads and bt: what every program on glibc is asked.
 */
extern const char *const subject_glibc[];

void subject_begin(struct subject *s);
/* One session. Exit 0 without a complaint, or exit 6, which is counted. */
void subject_session(struct subject *s);
/* Everything is as in the beginning, it is the same process, and refusals were rare. */
void subject_end(struct subject *s);
/* n sessions, in turn with each of the subjects, begun and ended here. */
void subject_many(struct subject *s, size_t subjects, unsigned n);
/* Adds up sessions, refusals and the longest run of several. */
void subject_sum(const struct subject *s, size_t n, struct subject *sum);

/* The children of a process by /proc; returns how many, at most max. */
size_t process_children(pid_t pid, pid_t *child, size_t max);
/* Its command line as one line. */
void process_command(pid_t pid, char *buf, size_t size);

/* The size of a log now; nothing that is written to it after that may speak of harm. */
long log_size(const char *path);
void log_is_harmless(const char *path, long from);
#endif
