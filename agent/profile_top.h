// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROFILE_TOP_H
#define HM_PROFILE_TOP_H
#include "calls.h"

/* The functions of a profile: what each has allocated itself (flat), and with all it called (cum).
 */
struct top_row {
	const char *symbol;	   /* as it is shown */
	const char *file;	   /* of most of its bytes; "": not known */
	unsigned line;		   /* 0: not known */
	uint64_t pc;		   /* of most of its bytes; at: its place among what is inlined */
	uint32_t at;		   /* there, the innermost is 0 */
	struct profile_count flat; /* of stacks that end in it */
	double cum_bytes;	   /* live, of stacks that it is on; once where it calls itself */
};
struct profile_top {
	struct top_row *row;
	size_t rows;
	struct profile_count total; /* the sum of all flat counts */
};

/* By flat live bytes, or by cum, largest first; then by name. Texts are c's. -ENOMEM. */
HM_MUST_CHECK int profile_top_make(const struct calls *c, bool by_cum, struct profile_top *out);
void profile_top_free(struct profile_top *t);

/* How the functions of one profile have changed in another one. */
struct change_row {
	const char *symbol, *file;
	unsigned line;
	double before_bytes, after_bytes; /* flat, live */
	double before_objects, after_objects;
	double cum_before_bytes, cum_after_bytes;
};
struct profile_change {
	struct change_row *row; /* only those in which something is different */
	size_t rows;
	struct profile_count before, after; /* totals */
};
/* Largest change first, growth and shrinking alike; then by name. -ENOMEM. */
HM_MUST_CHECK int profile_change_make(const struct calls *a, const struct calls *b,
				      struct profile_change *out);
void profile_change_free(struct profile_change *v);

/* The whole table as text: its head, then one line per function, by flat. */
void profile_top_text(const struct profile_top *t, const struct profile *p, struct bytes *out);
#endif
