// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef CRASH_H
#define CRASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../live/program.h"
#include "../live/victim.h"

/*
 * A victim of which heapmedic's sudden deaths are survived, and what has been seen so far. Nothing
 * here returns an error: what goes wrong fails the running test.
 */
struct patient {
	struct victim v;
	struct state before, now;
	pid_t ours; /* the oldest proxy that killed runs have left, and since when it is that */
	uint64_t ours_since;
	unsigned crashes, with_rest; /* killed runs; those of them that left something behind */
	uint64_t longest_ns;	     /* until it was as before again, rests apart */
};

/* The victim is one of those that check themselves; its heap keeps its place. args may be NULL. */
void patient_start(struct patient *p, const char *name, const char *arg1, const char *arg2);
/* From now on it is to be as it is now. */
void patient_admit(struct patient *p);
/*
 * Every thread has made another whole turn, nothing of heapmedic is left after at most one more
 * run, and the victim ends well. Returns how many early EINTR it was told of. more: victim_report.
 */
unsigned patient_end(struct patient *p, char *more, size_t size);

/* The arguments of a run: -p PID, --deadline 20s, the words; they point into the result. */
struct crash_args {
	char pid[16];
	const char *v[RUN_ARGS + 1];
};
/* words as in "--via direct --thread MAIN trim", where MAIN is the victim's first thread. */
void crash_args(struct crash_args *a, const struct patient *p, const char *words);

/* A run with these arguments (NULL ends them) that is killed in front of request `point`; false if
 * it has come to its end before, with exit 0. */
bool crash_run_at(unsigned point, const char *const *args);
/*
 * Runs it and kills it in front of the request `point` (from 1) that touches the target; false if
 * it has come to its end before, with exit 0. Then patient_check.
 */
bool crash_at(struct patient *p, unsigned point, const char *words);
/* Kills it after ns. False if it has ended before, with exit 0. Then patient_check. */
bool crash_after(struct patient *p, uint64_t ns, const char *words);
/*
 * Within 5 s the victim is as before, apart from a region or a sleeping thread of heapmedic's, and
 * no such thread gets older than that.
 */
void patient_check(struct patient *p);
/* A whole run takes away what is left. Only when no thread of heapmedic lives: what is there might
 * be that thread's. */
void patient_clean(struct patient *p, const char *words);
/* Waits until no thread of heapmedic is left. */
void patient_settle(struct patient *p);
#endif
