// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_EFFECT_TEXT_H
#define HM_EFFECT_TEXT_H
#include "../agent/jemalloc_change.h"
#include "command.h"

/* What a purge or a decay time has done, as text and as the keys that a trim has. */

/* The one line: rss before and after, the call, how long a thread was held. */
void effect_line(const struct context *c, const struct jemalloc_effect *e);
/* jemalloc's books before and after, and what dirty, muzzy and retained pages are. */
void effect_books(const struct context *c, const struct jemalloc_effect *e);
/* books: the sums are known, too. */
void effect_json(struct reply *r, const struct jemalloc_effect *e, bool books);
#endif
