// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LAST_LOOK_H
#define HM_LAST_LOOK_H
#include "context.h"

/*
 * What the shell has seen of its process last, without a call, so that it can still be looked at
 * when that has ended. Kept as a snapshot's bytes: what is read of a process points into it.
 */
struct last_look;
struct last_look *last_look_new(void); /* NULL: no memory; all of these take that */
void last_look_free(struct last_look *l);
/*
 * Looks again, unless the last look is so new that looking would take more than a hundredth of the
 * time. One that takes a tenth of a second of CPU time or less is always made, after a change also
 * one of a second. What cannot be seen leaves what was seen before.
 */
void last_look_take(struct last_look *l, struct context *c);
/*
 * The process has ended: says how, as far as that is known, closes it, and has the looking commands
 * answer from the last look (c->loaded, c->ended).
 */
void last_look_use(struct last_look *l, struct context *c);
/* "14:03:22", when what is looked at was seen, by the local clock. buf is returned. */
const char *last_look_time(const struct context *c, char *buf, size_t size);
#endif
