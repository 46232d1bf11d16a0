// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_WATCH_TEXT_H
#define HM_WATCH_TEXT_H
#include <stdio.h>

#include "../agent/watch.h"
#include "command.h"

/* One line as people read it; its columns stand below those of the header. */
struct watch_style {
	bool raw;   /* plain bytes */
	bool after; /* with what came back after a trim */
};
void watch_print_header(FILE *out, const struct watch_style *s);
/* time is "12:00:02" */
void watch_print(FILE *out, const struct watch_style *s, const char *time,
		 const struct watch_line *l);
/* The same as an object: what is not known is null. */
json_t *watch_json(struct reply *r, const struct watch_line *l, const struct trim_mark *mark);
/* null, or what became of the trim. */
json_t *after_trim_json(struct reply *r, const struct trim_mark *mark, const struct after_trim *a);
/* null where it is not known */
json_t *growth_json(enum growth g);
#endif
