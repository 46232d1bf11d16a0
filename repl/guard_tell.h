// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GUARD_TELL_H
#define HM_GUARD_TELL_H
#include "cond.h"
#include "guard_args.h"

/* One run of `guard`, and what it says of it: a line for each decision, or an object with --json.
 */
struct guarding {
	struct context *c;
	struct reply *r;
	struct guard_args args;
	struct guard guard;
	bool action_known;     /* there was one on this process, */
	uint64_t acted_at;     /* at this time of CLOCK_BOOTTIME */
	struct facts acted_on; /* what was known when it acted itself */
	char last[16];	       /* decision, to be quiet about the same again */
	uint64_t looks;
	bool told_pause; /* that it looks less often than it was told to */
};

/* CLOCK_BOOTTIME in ns, as the records of actions have it; 0 if it cannot be read. */
uint64_t guard_boot_now(void);
/* cond NULL: none was looked at. With --quiet only what is another decision than before. */
void guard_tell(struct guarding *x, const char *decision, const char *reason,
		const struct cond *cond);
/* The reason of a decision that is no action. */
void guard_explain(const struct guarding *x, enum guard_decision decision, const struct cond *cond,
		   char *text, size_t size);
/* Where it looks much less often than it was told to, that is told, once. Times in ns. */
void guard_tell_pause(struct guarding *x, uint64_t cost, uint64_t pause);
/* The last words. cpu: clock_cpu when it began; ns: how long it was. */
void guard_sum_up(struct guarding *x, uint64_t cpu, uint64_t ns);
#endif
