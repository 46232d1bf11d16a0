// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOLS_H
#define HM_SYMBOLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * Addresses of a process, or of one that was, to functions, outside of it: from the files that are
 * or were mapped there, and from their separate debug files. Nothing of a file stays in memory, and
 * no file stays open: what is kept is about 60 bytes for each address that was asked for, 32 for
 * each frame, and each name once. While symbols_prepare runs there are about 200 bytes more for
 * each address of the file that is being read, whatever the size of its symbol table.
 */
struct symbol_map {
	uint64_t start, end, offset; /* as in /proc/PID/maps */
	const char *path;	     /* NULL or "": no file */
	const char *build_id;	     /* hex, as it was in the process; NULL: not known */
	uint64_t inode;		     /* of its file; 0: not known, or the file is checked by open */
	bool deleted;		     /* the file had no name any more when it was mapped there */
};

/*
 * Opens the file of a mapping for reading: a descriptor, which symbols takes over, or -errno. A map
 * with end 0 asks for a separate debug file: its path alone counts. Regular files only, and none
 * that blocks or does something when it is opened.
 */
typedef int (*symbol_open_fn)(void *arg, const struct symbol_map *m);

struct symbol_frame {
	const char *name; /* mangled as in the file; NULL: none */
	const char *file; /* source file; NULL: not known */
	unsigned line;	  /* 0: not known */
	bool inlined;	  /* into the next frame */
};

/* What a mapping's file is good for. */
enum symbols_state {
	SYMBOLS_UNASKED, /* no address of it was looked up yet */
	SYMBOLS_NO_FILE, /* anonymous memory, or something like [vdso] that cannot be opened */
	SYMBOLS_GONE,	 /* the file cannot be opened: symbols_error says why */
	SYMBOLS_CHANGED, /* another file is there now: nothing of it is believed */
	SYMBOLS_BAD,	 /* no ELF file for x86-64, or damaged */
	SYMBOLS_NONE,	 /* stripped, no separate debug file: no names */
	SYMBOLS_MEMORY, /* as SYMBOLS_EXPORTED, from what is mapped: its file is gone or another one
			 */
	SYMBOLS_EXPORTED, /* exported functions only: others are missing, or under a neighbour's
			   * name
			   */
	SYMBOLS_NAMES,	  /* all functions, no lines */
	SYMBOLS_DAMAGED,  /* the same, because its debug info could not be read to the end */
	SYMBOLS_LINES,	  /* debug info: lines, inlined functions */
};

struct symbols;

/*
 * maps (in any order; overlapping ones are not looked up) and their strings must stay. Nothing is
 * opened yet. -ENOMEM. The caller ends *out with symbols_free.
 */
HM_MUST_CHECK int symbols_new(const struct symbol_map *maps, size_t n, symbol_open_fn open,
			      void *arg, struct symbols **out, struct diag *d);
void symbols_free(struct symbols *s); /* s may be NULL */
/* What is looked up from now on gets no files and lines, only functions, inlined ones too: half of
 * the time where there is debug information. */
void symbols_skip_places(struct symbols *s);
/*
 * Looks up all of pcs (in any order, any number of times each) at once: each symbol table is read
 * once for all of its addresses, so this is the way for more than a few. What cannot be resolved is
 * no error; see symbols_state. -ENOMEM.
 */
HM_MUST_CHECK int symbols_prepare(struct symbols *s, const uint64_t *pcs, size_t n, struct diag *d);
/*
 * The functions at pc, innermost first, at most max; how many there are, 0 if nothing is known. pc
 * is looked up as it is: who has a return address subtracts 1. One that was not prepared is looked
 * up now, which reads its file's symbols. Strings live as long as s.
 */
size_t symbols_find(struct symbols *s, uint64_t pc, struct symbol_frame *out, size_t max);
/* The build id of the map's file in hex; NULL: none, or no such file. Opens the file if no address
 * of it was looked up yet. */
const char *symbols_build_id(struct symbols *s, size_t map);
/* Is a file used for the map that may be another one: its inode is not that of the map, and no
 * build id says that it is the same, as it is on another host. */
bool symbols_other_inode(const struct symbols *s, size_t map);
/* What could be had for the map; *error (or NULL) is the errno behind it, negative, or 0. */
enum symbols_state symbols_state(const struct symbols *s, size_t map, int *error);
/* "the file has changed since it was mapped", to stand behind a path. */
const char *symbols_state_text(enum symbols_state state);
#endif
