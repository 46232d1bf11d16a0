// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CALLS_H
#define HM_CALLS_H
#include "bytes.h"
#include "texts.h"
#include "profile.h"
#include "symbols.h"

/*
 * A heap profile with functions in place of addresses, and without the allocator's own frames: what
 * all views of it are made of. All text in it is printable ASCII: the rest is written \xNN.
 */

/* How functions are shown. */
enum call_names {
	CALL_NAMES_BRIEF,   /* demangled, without parameters */
	CALL_NAMES_FULL,    /* demangled */
	CALL_NAMES_MANGLED, /* as they stand in the symbol tables */
};

/* Where the names come from; those of a symbolised profile come before it. */
struct call_source {
	/* as symbols_find; NULL: there is none */
	size_t (*find)(void *arg, uint64_t pc, struct symbol_frame *out, size_t max);
	void *arg;
	enum call_names names;
};

/* Texts are numbers of calls.texts; 0 is "": not known. */
struct call_func {
	uint32_t name;	 /* as it is shown; functions with the same one are the same */
	uint32_t system; /* as the symbol table has it */
	uint32_t file;	 /* of the source */
};
/* A function at an address: more than one where some were inlined. */
struct call_line {
	uint32_t func;
	uint32_t line; /* 0: not known */
};
struct call_site {
	uint64_t pc;			     /* as profile_lookup gives it */
	const struct profile_map *map;	     /* NULL: in none that is known */
	uint32_t first, lines;		     /* innermost first; one at least */
	bool known;			     /* else the function is the address in words */
	bool named_internal, filed_internal; /* of the allocator, by its name or its file */
};
struct call_stack {
	const uint32_t *site; /* innermost first */
	uint32_t depth;	      /* 1 at least */
	const struct profile_count *n;
};

/* An address takes some 230 bytes, most of them where it has no name. No program has so many call
 * sites that allocate: what says so is damaged, or made for it. */
#define CALLS_SITES_MAX ((size_t)1 << 20)

struct calls {
	const struct profile *profile; /* must outlive it */
	struct texts texts;
	struct call_func *func;
	struct call_line *line;
	struct call_site *site;
	struct call_stack *stack; /* as many as the profile has, in its order */
	size_t funcs, lines, sites, stacks;
	size_t unknown; /* sites without a name */
	struct pool *pool;
};

/*
 * Pure but for source. An allocator's frames are left out as jeprof leaves them out of heap
 * profiles: all from the innermost one up to the outermost that call_internal knows, and before
 * that those in the file of an allocator; of a stack with nothing else the outermost frame stays.
 * -ENOMEM, -EOVERFLOW, -E2BIG beyond CALLS_SITES_MAX addresses. The caller ends *out with
 * calls_free.
 */
HM_MUST_CHECK int calls_make(const struct profile *p, const struct call_source *source,
			     struct calls **out);
void calls_free(struct calls *c);

static inline const char *calls_text(const struct calls *c, uint32_t name)
{
	return c->texts.v[name];
}

/* The addresses to look up for a profile, each once; free(3) them. -ENOMEM; -E2BIG beyond
 * CALLS_SITES_MAX. */
HM_MUST_CHECK int calls_lookups(const struct profile *p, uint64_t **pcs, size_t *n);

/*
 * Appends the symbol section of jeprof's symbolised form, with the heading of the heap section
 * behind it; the dump itself follows. Names are those that are shown; frames of an allocator's file
 * that have none are called malloc, which readers leave out. build_id (may be NULL) says in hex
 * what map i of the profile has, NULL where it is not known: profile_parse reads these lines back,
 * jeprof passes over what begins with neither a letter nor an address (its ReadSymbols).
 */
void calls_symbol_section(const struct calls *c, const char *(*build_id)(void *arg, size_t map),
			  void *arg, struct bytes *out);
#endif
