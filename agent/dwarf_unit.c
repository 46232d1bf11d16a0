// SPDX-License-Identifier: GPL-3.0-or-later
#include "dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#define DEPTH_MAX  256
#define FRAMES_MAX 64
#define NO_NODE	   0 /* node[0] is none */

/* A function, or an inlined one, that some address lies in. */
struct node {
	uint32_t parent; /* that it is inlined into; NO_NODE: none */
	unsigned call_line;
	const char *call_file;
	const char *name;
	bool inlined, unscoped;
};

struct walk {
	struct dwarf_at *v;
	size_t n;
	struct node *node;
	size_t nodes, cap;
	Dwarf_Files *files; /* NULL: none */
	bool places;	    /* files and lines are wanted */
	const char *dir;    /* of the compilation; NULL: not known */
	bool scoped;	    /* the language has scopes, so that DW_AT_name is not all */
	bool in_types;	    /* functions are defined inside of types */
	bool deep;	    /* look everywhere, also inside of functions that cover nothing */
	int err;
};

static void set_language(struct walk *w, Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
	case DW_LANG_Go:
		break;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		w->scoped = true;
		break;
	default:
		w->scoped = w->in_types = true;
		break;
	}
}

static const char *string_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, name, &a) ? dwarf_formstring(&a) : NULL;
}

static void name_node(const struct walk *w, Dwarf_Die *die, struct node *node)
{
	node->name = string_of(die, DW_AT_linkage_name);
	if (!node->name)
		node->name = string_of(die, DW_AT_MIPS_linkage_name);
	if (node->name)
		return;
	node->name = string_of(die, DW_AT_name);
	node->unscoped = w->scoped;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute a;
	Dwarf_Word v = 0;

	return dwarf_attr(die, name, &a) && !dwarf_formudata(&a, &v) ? v : 0;
}

/* NO_NODE: no memory, which w->err then says. */
static uint32_t add_node(struct walk *w, Dwarf_Die *die, uint32_t parent, bool inlined)
{
	size_t cap = w->cap ? 2 * w->cap : 64;
	struct node *v;

	if (w->nodes == w->cap) {
		v = w->nodes < UINT32_MAX / 2 ? realloc(w->node, cap * sizeof(*v)) : NULL;
		if (!v) {
			w->err = -ENOMEM;
			return NO_NODE;
		}
		w->node = v;
		w->cap = cap;
	}
	v = &w->node[w->nodes];
	*v = (struct node){ .parent = inlined ? parent : NO_NODE, .inlined = inlined };
	name_node(w, die, v);
	if (inlined) {
		v->call_line = (unsigned)number_of(die, DW_AT_call_line);
		if (w->files)
			v->call_file = dwarf_filesrc(
				w->files, (size_t)number_of(die, DW_AT_call_file), NULL, NULL);
	}
	return (uint32_t)w->nodes++;
}

static size_t lower(const struct walk *w, uint64_t at)
{
	size_t lo = 0, hi = w->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (w->v[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

enum cover {
	COVERS_NOTHING, /* of ours */
	COVERS,
	HAS_NO_RANGE,
};

/*
 * Does die cover addresses? If so, and it is a function, they are in its node now: the walk comes
 * to the inner ones later. *node is the one that it is in, and becomes its own.
 */
static enum cover cover(struct walk *w, Dwarf_Die *die, bool function, bool inlined, uint32_t *node)
{
	enum cover ret = HAS_NO_RANGE;
	uint32_t own = NO_NODE;
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	size_t i;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (ret == HAS_NO_RANGE)
			ret = COVERS_NOTHING;
		for (i = lower(w, lo); i < w->n && w->v[i].at < hi; i++) {
			if (function && !own) {
				own = add_node(w, die, *node, inlined);
				if (!own)
					return COVERS_NOTHING;
			}
			if (function)
				w->v[i].node = own;
			ret = COVERS;
		}
	}
	if (own)
		*node = own;
	return ret;
}

/*
 * A function that covers nothing has nothing of ours inside, but for what gcc makes of a lambda:
 * its code is a function of a class inside of the function that it stands in.
 */
static bool enter_function(struct walk *w, Dwarf_Die *die, bool inlined, uint32_t *node)
{
	if (cover(w, die, true, inlined, node) == COVERS)
		return true;
	*node = NO_NODE;
	return w->deep;
}

/* Whether there may be functions of ours inside of die; *node as in cover. */
static bool enter(struct walk *w, Dwarf_Die *die, uint32_t *node)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_entry_point:
		return enter_function(w, die, false, node);
	case DW_TAG_inlined_subroutine:
		return enter_function(w, die, true, node);
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return cover(w, die, false, false, node) != COVERS_NOTHING || w->deep;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_variant_part:
	case DW_TAG_variant:
		return w->in_types || w->deep;
	default:
		return false;
	}
}

/* die and those beside it. Ends: each step goes on in the file, or one level down. */
static void walk(struct walk *w, Dwarf_Die *die, uint32_t node, unsigned depth)
{
	Dwarf_Die child;
	uint32_t own;

	do {
		own = node;
		if (enter(w, die, &own) && depth < DEPTH_MAX && !w->err &&
		    dwarf_child(die, &child) == 0)
			walk(w, &child, own, depth + 1);
	} while (!w->err && dwarf_siblingof(die, die) == 0);
}

/* The line of the address itself: of the innermost function. */
static void line_at(Dwarf_Die *unit, uint64_t at, struct dwarf_frame *f)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, at);
	int n;

	if (!line)
		return;
	f->file = dwarf_linesrc(line, NULL, NULL);
	if (!dwarf_lineno(line, &n) && n > 0)
		f->line = (unsigned)n;
}

static size_t frames_at(const struct walk *w, Dwarf_Die *unit, const struct dwarf_at *v,
			struct dwarf_frame *f)
{
	uint32_t node = v->node;
	size_t n = 0;

	f[0] = (struct dwarf_frame){ .dir = w->dir };
	if (w->places)
		line_at(unit, v->at, &f[0]);
	/* A parent is always an older node. */
	while (node && n < FRAMES_MAX) {
		const struct node *at = &w->node[node];

		f[n].name = at->name;
		f[n].inlined = at->inlined && at->parent;
		f[n].unscoped = at->unscoped;
		n++;
		if (!at->parent || n == FRAMES_MAX)
			break;
		f[n] = (struct dwarf_frame){ .file = at->call_file,
					     .dir = w->dir,
					     .line = w->places ? at->call_line : 0 };
		node = at->parent;
	}
	return n ? n : f[0].file != NULL;
}

static bool all_found(const struct walk *w)
{
	size_t i;

	for (i = 0; i < w->n && w->v[i].node; i++)
		;
	return i == w->n;
}

/* Where the quick way does not find all, the thorough one: it reads every entry of the unit. */
static void walk_unit(struct walk *w, Dwarf_Die *unit)
{
	Dwarf_Die child;

	if (dwarf_child(unit, &child))
		return;
	walk(w, &child, NO_NODE, 0);
	if (w->err || all_found(w) || dwarf_child(unit, &child))
		return;
	w->deep = true;
	walk(w, &child, NO_NODE, 0);
}

int dwarf_unit_find(Dwarf_Die *unit, struct dwarf_at *v, size_t n, size_t *lines,
		    dwarf_take_fn take, void *arg)
{
	struct walk w = { .v = v, .n = n, .nodes = 1, .cap = 64, .places = lines != NULL };
	struct dwarf_frame f[FRAMES_MAX];
	Dwarf_Lines *table;
	size_t i, count;

	w.node = calloc(w.cap, sizeof(*w.node));
	if (!w.node)
		return -ENOMEM;
	set_language(&w, unit);
	w.dir = string_of(unit, DW_AT_comp_dir);
	if (lines && !dwarf_getsrclines(unit, &table, &count))
		*lines += count;
	if (!lines || dwarf_getsrcfiles(unit, &w.files, &count))
		w.files = NULL;
	walk_unit(&w, unit);
	for (i = 0; i < n && !w.err; i++) {
		count = frames_at(&w, unit, &v[i], f);
		if (count)
			w.err = take(v[i].i, f, count, arg);
	}
	free(w.node);
	return w.err;
}
