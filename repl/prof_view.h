// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROF_VIEW_H
#define HM_PROF_VIEW_H
#include "../agent/calls.h"
#include "../agent/profile_top.h"
#include "../agent/symbols_live.h"
#include "commands.h"

/* A heap profile that a command shows: of a file, or of the target as it is now. */
struct prof_view {
	struct profile *profile;
	struct calls *calls;
	struct symbols *symbols; /* NULL: the profile has its own names */
	struct symbol_map *map;
	struct symbols_live live; /* what opens files, where they are those of the target */
	symbol_open_fn open;
	struct pool *places; /* texts of prof_view_places */
};

/*
 * Reads and resolves it; path NULL: of the target. What is wrong with it, and which files have no
 * names, is warned of. Exit 2 for a file that cannot be read or is no profile; what prof_take says.
 * Nothing is to be freed after an error. places: with files and lines.
 */
HM_MUST_CHECK int prof_view_open(struct context *c, struct reply *r, const char *path,
				 enum call_names names, bool places, struct prof_view *v,
				 struct diag *d);
/* Finds the files and lines of these rows of a view that was opened without places: a few cost far
 * less than all. */
HM_MUST_CHECK int prof_view_places(struct prof_view *v, struct top_row *row, size_t n,
				   struct diag *d);
/* prof_view_open without places, for the text of a dump that the target has just made; it is not
 * needed any more then. */
HM_MUST_CHECK int prof_view_text(struct context *c, struct reply *r, const char *text, size_t len,
				 enum call_names names, struct prof_view *v, struct diag *d);
/* The build-id of map i, in hex; NULL: not known. arg is a struct prof_view. */
const char *prof_view_build_id(void *arg, size_t map);
void prof_view_close(struct prof_view *v);
#endif
