// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOLS_PRIVATE_H
#define HM_SYMBOLS_PRIVATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"
#include "symbols.h"

/* Shared by symbols.c (what is known) and symbols_resolve.c (how it becomes known). */
#define SYMBOLS_FRAMES 64 /* of one address, at most */

struct symbols_place {
	uint64_t pc;
	uint32_t first; /* of its frames */
	uint16_t frames;
};

struct symbols_map {
	const struct symbol_map *map;
	const char *build_id; /* of the file; in names */
	bool looked;	      /* at the build id */
	bool other_inode;
	enum symbols_state state;
	int error;
	size_t first, count; /* places that are being resolved */
};

struct symbols {
	symbol_open_fn open;
	void *arg;
	const struct symbol_map *maps; /* the caller's */
	struct symbols_map *map;       /* by address */
	uint32_t *of;		       /* the place in map of the caller's i-th */
	size_t n;
	struct symbols_place *place; /* by pc, but for those that are being resolved */
	size_t places;
	struct symbol_frame *frame;
	size_t frames, frames_cap;
	struct names *names;
	bool no_places; /* files and lines are not wanted */
};

/* Resolves the places that the maps' first and count name. -ENOMEM. */
HM_MUST_CHECK int symbols_resolve(struct symbols *s);
/* Opens the map's file for its build id only. */
void symbols_look(struct symbols *s, struct symbols_map *m);
/* Appends a frame to a place, which is the last one that has got any. -ENOMEM. */
HM_MUST_CHECK int symbols_add_frame(struct symbols *s, struct symbols_place *p,
				    const struct symbol_frame *f);
#endif
