// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SCRAPE_H
#define HM_SCRAPE_H
#include "context.h"
#include "targets.h"

/*
 * The metrics of processes that are looked at again and again: who has the names is found out anew
 * each time, so that a restart is followed; of one that has ended nothing is left but an up of 0.
 * What costs little (the RSS) is read each time, the heap as often as that takes no more than a
 * hundredth of one CPU (pace.h).
 */
#define SCRAPE_PROCESSES 64 /* at most; of more the rest is left out, and said */

struct scrape_plan {
	const struct selector *v;
	size_t n;
	uint64_t least; /* ns: a text so young is given again */
	bool call; /* allocators are asked, by calls on a thread of ours that waits in between */
};

struct scrape;
/* c: settings and sink are taken from it, and notes go there. Both must stay valid. -ENOMEM. */
HM_MUST_CHECK int scrape_new(struct context *c, const struct scrape_plan *plan,
			     struct scrape **out);
/* The text, which is the scrape's until the next time. 0 or -ENOMEM: what cannot be looked at is no
 * error. */
HM_MUST_CHECK int scrape_take(struct scrape *s, const char **text, size_t *len);
/* How often processes were looked at. */
uint64_t scrape_looks(const struct scrape *s);
/* Ends all sessions. HM_OK, or the highest exit code of what was not as before: it is told. */
enum hm_exit scrape_free(struct scrape *s);
#endif
