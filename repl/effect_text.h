// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_EFFECT_TEXT_H
#define HM_EFFECT_TEXT_H
#include "../agent/jemalloc_change.h"
#include "../agent/trim.h"
#include "../inject/usage.h"
#include "command.h"

/* What a trim, a purge or a decay time has done, as text and as JSON. */

/* ---- of any change */

/* "one thread held 0.3 ms"; buf is returned. */
const char *held_text(const struct held *h, char *buf, size_t size);
json_t *held_json(struct reply *r, const struct held *h);
/* "rss 3.9 GiB -> 1.1 GiB (-2.8 GiB)", painted where it is less; buf is returned. */
const char *rss_text(const struct context *c, const struct usage *before, const struct usage *after,
		     char *buf, size_t size);
/* A line of its own where something is or was in swap. */
void swap_line(const struct context *c, const struct usage *before, const struct usage *after);

/* null where nothing is known. */
json_t *predicted_json(const struct prediction *p);
/* An array: what each of n allocators has done. */
json_t *parts_json(struct reply *r, const struct trim_part *v, size_t n);

/* ---- of jemalloc's */

/* The one line: rss before and after, the call, how long a thread was held. */
void effect_line(const struct context *c, const struct jemalloc_effect *e);
/* jemalloc's books before and after, and what dirty, muzzy and retained pages are. */
void effect_books(const struct context *c, const struct jemalloc_effect *e);
/* purged: the allocator of a purge, of which the sums are known, too; else NULL. */
void effect_json(struct reply *r, const struct jemalloc_effect *e, const struct allocator *purged);
#endif
