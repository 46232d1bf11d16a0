// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../agent/glibc_arenas.h"
#include "../agent/jemalloc_arenas.h"
#include "context.h"
#include "view.h"

#define ROWS_SHOWN 20
#define ORIGIN	   "passive" /* read from memory: nothing was held or called */

/* ---- what stands behind the numbers of a row */

struct flag {
	const char *name;
	bool set;
};
enum { FLAGS = 4 };

static void row_flags(const struct glibc_arena_plan *a, struct flag out[FLAGS])
{
	const struct flag flags[FLAGS] = {
		{ "moving", a->moving },
		{ "swapped", a->swapped_out },
		{ "cut", a->cut },
		{ "damaged", a->fault.kind != FAULT_NONE },
	};

	memcpy(out, flags, sizeof(flags));
}

static uint64_t trimmable(const struct glibc_arena_plan *a)
{
	return a->pages.trimmable + a->swapped;
}

/* ---- text */

static const struct column columns[] = {
	{ "ARENA", true },    { "SYSTEM", true },   { "IN USE", true },	   { "FREE", true },
	{ "FREE RSS", true }, { "STRANDED", true }, { "TRIMMABLE", true }, { "TOP", true },
	{ "THREADS", true },  { "FLAGS", false },
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))
/* Left out first where there is no room: free is what is not in use, and top a part of it. */
static const unsigned optional[] = { 7 /* TOP */, 8 /* THREADS */, 3 /* FREE */ };

/* "moving,damaged: bin 35, chunk 0x7f0000001230: impossible size 0x41" */
static void flags_text(const struct glibc_arena_plan *a, char *buf, size_t size)
{
	char where[128], what[160];
	struct flag flags[FLAGS];
	size_t used = 0;

	row_flags(a, flags);
	buf[0] = '\0';
	for (size_t i = 0; i < FLAGS; i++)
		if (flags[i].set)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? "," : "",
						 flags[i].name);
	if (a->fault.kind)
		snprintf(buf + used, size - used, ": %s: %s",
			 glibc_fault_where(&a->fault, where, sizeof(where)),
			 glibc_fault_text(&a->fault, what, sizeof(what)));
}

static void print_row(struct table *t, const struct glibc_arena_plan *a, bool total, bool bytes)
{
	char cell[9][SIZE_TEXT], flags[360];
	const char *cells[COLUMNS] = {
		total ? "total" : cell[0],
		text_size(cell[1], a->system_mem, bytes),
		text_size(cell[2], a->in_use, bytes),
		text_size(cell[3], a->free, bytes),
		text_size(cell[4], a->free_resident, bytes),
		text_size(cell[5], a->stranded_bytes, bytes),
		text_size(cell[6], trimmable(a), bytes),
		text_size(cell[7], a->top_bytes, bytes),
		cell[8],
		flags,
	};

	snprintf(cell[0], SIZE_TEXT, "%u", a->index);
	snprintf(cell[8], SIZE_TEXT, "%" PRIu64, a->attached);
	flags_text(a, flags, sizeof(flags));
	table_row(t, cells);
}

static const char *threshold_text(char buf[SIZE_TEXT], uint64_t v, bool bytes)
{
	/* M_TRIM_THRESHOLD of -1: never */
	return v == UINT64_MAX ? "off" : text_size(buf, v, bytes);
}

static void print_limit(FILE *out, const struct glibc_arenas *a)
{
	uint64_t set = a->plan.par.arena_max;

	if (set)
		fprintf(out, "arena_max %" PRIu64, set);
	else
		fputs("arena_max not set", out);
	if (a->limit && a->cpus)
		fprintf(out, ", at most %" PRIu64 " arenas: 8 x %u CPUs", a->limit, a->cpus);
	else if (!a->limit)
		fputs(", the limit in force is not known", out);
}

static void print_parameters(const struct context *c, const struct glibc_arenas *a)
{
	const struct glibc_par *par = &a->plan.par;
	char size[SIZE_TEXT], trim[SIZE_TEXT], map[SIZE_TEXT];
	FILE *out = c->sink->out;
	bool bytes = c->set.bytes;

	if (!par->at) {
		fputs("mmapped chunks and thresholds were not found\n", out);
		return;
	}
	fprintf(out, "mmapped %s in %d chunk%s (" ORIGIN ")\n",
		text_size(size, par->mmapped_mem, bytes), par->n_mmaps,
		par->n_mmaps == 1 ? "" : "s");
	fprintf(out, "trim_threshold %s, mmap_threshold %s, %s (" ORIGIN ")\n",
		threshold_text(trim, par->trim_threshold, bytes),
		threshold_text(map, par->mmap_threshold, bytes),
		par->no_dyn_threshold ? "frozen" : "dynamic");
	print_limit(out, a);
	fputs(" (" ORIGIN ")\n", out);
}

static int print_arenas(const struct context *c, const struct glibc_arenas *a, bool all)
{
	const struct glibc_plan *plan = &a->plan;
	size_t shown = all || plan->arenas < ROWS_SHOWN ? plan->arenas : ROWS_SHOWN;
	struct table *t = table_new(columns, COLUMNS);
	int err;

	if (!t)
		return -ENOMEM;
	table_optional(t, optional, sizeof(optional) / sizeof(optional[0]));
	for (size_t i = 0; i < shown; i++)
		print_row(t, &plan->arena[i], false, c->set.bytes);
	print_row(t, &plan->total, true, c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	if (shown < plan->arenas)
		fprintf(c->sink->out, "and %zu more arenas (arenas --all)\n", plan->arenas - shown);
	print_parameters(c, a);
	return err;
}

/* ---- JSON */

static json_t *fault_json(struct reply *r, const struct glibc_fault *f)
{
	char where[128], what[160];
	json_t *o;

	if (f->kind == FAULT_NONE)
		return json_null();
	o = json_object();
	reply_member(r, o, "kind", json_string(glibc_fault_name(f->kind)));
	reply_member(r, o, "where", json_string(glibc_fault_where(f, where, sizeof(where))));
	reply_member(r, o, "text", json_string(glibc_fault_text(f, what, sizeof(what))));
	return o;
}

static void add_figures(struct reply *r, json_t *o, const struct glibc_arena_plan *a)
{
	json_t *words = json_array();
	struct flag flags[FLAGS];

	reply_member(r, o, "system", json_u64(a->system_mem));
	reply_member(r, o, "in_use", json_u64(a->in_use));
	reply_member(r, o, "free", json_u64(a->free));
	reply_member(r, o, "free_resident", json_u64(a->free_resident));
	reply_member(r, o, "stranded", json_u64(a->stranded_bytes));
	reply_member(r, o, "trimmable", json_u64(trimmable(a)));
	reply_member(r, o, "pinned", json_u64(a->pages.pinned));
	reply_member(r, o, "top", json_u64(a->top_bytes));
	reply_member(r, o, "threads", json_u64(a->attached));
	row_flags(a, flags);
	for (size_t i = 0; i < FLAGS; i++)
		if (flags[i].set && json_array_append_new(words, json_string(flags[i].name)))
			r->failed = true;
	reply_member(r, o, "flags", words);
}

static void reply_arenas(struct reply *r, const struct glibc_plan *plan)
{
	json_t *list = json_object_get(r->result, "arenas");

	for (size_t i = 0; i < plan->arenas; i++) {
		const struct glibc_arena_plan *a = &plan->arena[i];
		json_t *o = json_object();

		reply_member(r, o, "allocator", json_string("glibc"));
		reply_member(r, o, "index", json_integer(a->index));
		add_figures(r, o, a);
		reply_member(r, o, "damage", fault_json(r, &a->fault));
		reply_member(r, o, "origin", json_string(ORIGIN));
		if (json_array_append_new(list, o))
			r->failed = true;
	}
}

static json_t *parameters_json(struct reply *r, const struct glibc_arenas *a)
{
	const struct glibc_par *par = &a->plan.par;
	json_t *o;

	if (!par->at)
		return json_null();
	o = json_object();
	reply_member(r, o, "mmapped", json_u64(par->mmapped_mem));
	reply_member(r, o, "mmapped_count", json_integer(par->n_mmaps));
	reply_member(r, o, "trim_threshold", json_u64(par->trim_threshold));
	reply_member(r, o, "mmap_threshold", json_u64(par->mmap_threshold));
	reply_member(r, o, "thresholds", json_string(par->no_dyn_threshold ? "frozen" : "dynamic"));
	reply_member(r, o, "arena_max", par->arena_max ? json_u64(par->arena_max) : json_null());
	reply_member(r, o, "arena_limit", a->limit ? json_u64(a->limit) : json_null());
	reply_member(r, o, "origin", json_string(ORIGIN));
	return o;
}

static void reply_all(struct reply *r, const struct glibc_arenas *a)
{
	json_t *total = json_object();

	reply_arenas(r, &a->plan);
	reply_member(r, total, "arenas", json_u64(a->plan.arenas));
	add_figures(r, total, &a->plan.total);
	reply_member(r, total, "origin", json_string(ORIGIN));
	reply_set(r, "total", total);
	reply_set(r, "parameters", parameters_json(r, a));
}

/* ---- the command */

static void warn(struct context *c, struct reply *r, const struct glibc_plan *plan)
{
	char where[128], what[160], size[SIZE_TEXT];
	const struct glibc_fault *ring = &plan->ring_fault;

	if (ring->kind)
		reply_warn(c, r, "damaged-heap",
			   "the list of arenas is damaged: %s: %s; what comes behind is not shown",
			   glibc_fault_where(ring, where, sizeof(where)),
			   glibc_fault_text(ring, what, sizeof(what)));
	if (plan->total.pages.pinned)
		reply_warn(c, r, "pinned",
			   "%s are free, but locked or in huge pages of the pool: a trim cannot "
			   "return them",
			   text_size(size, plan->total.pages.pinned, c->set.bytes));
}

static void answer_none(struct context *c, struct reply *r)
{
	if (!c->set.json)
		fprintf(c->sink->out, "no arenas: %s has not allocated anything yet (%s)\n",
			c->comm, ORIGIN);
	reply_set(r, "total", json_null());
	reply_set(r, "parameters", json_null());
}

static int show_glibc(struct context *c, struct reply *r, bool all, struct diag *d)
{
	const struct glibc_arenas *arenas;
	struct glibc_arenas own;
	int err = view_arenas(c, &own, &arenas, d);

	if (err == -ENODATA) {
		answer_none(c, r);
		return 0;
	}
	if (err)
		return err;
	warn(c, r, &arenas->plan);
	if (c->set.json)
		reply_all(r, arenas);
	else if (print_arenas(c, arenas, all))
		err = diag_internal(d, -ENOMEM, "the table");
	if (arenas == &own)
		glibc_arenas_free(&own);
	return err;
}

/* Then glibc's are shown alone. */
static bool is_no_obstacle(const struct diag *d)
{
	return d->exit == HM_NOT_PERMITTED || d->exit == HM_UNSAFE || d->exit == HM_UNSUPPORTED ||
	       d->exit == HM_USAGE || d->exit == HM_CALL_FAILED;
}

/* Only a call tells them: where none can be made, glibc's are shown all the same. */
static int show_jemalloc(struct context *c, struct reply *r, bool all, bool beside, struct diag *d)
{
	const struct jemalloc_arenas *arenas;
	struct jemalloc_arenas own;
	const struct allocator *a = NULL;
	struct diag why = { 0 };
	int err = 0;

	if (!c->loaded && !c->set.passive)
		err = find_jemalloc(c, r, &a, &why);
	if (!err)
		err = view_jemalloc(c, a, &own, &arenas, &why);
	if (err && beside && is_no_obstacle(&why)) {
		reply_warn(c, r, "not-asked", "jemalloc's arenas are not shown: %s", why.text);
		return 0;
	}
	if (err) {
		*d = why;
		return err;
	}
	err = show_jemalloc_arenas(c, r, arenas, all, beside, d);
	if (arenas == &own)
		jemalloc_arenas_free(&own);
	return err;
}

int cmd_arenas(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocators *v = view_allocators(c);
	bool jemalloc = allocators_get(v, "jemalloc") != NULL;
	/* without either glibc's reader names what there is in their place */
	bool glibc = allocators_get(v, "glibc") || !jemalloc;
	bool all = a->opt[ARENAS_ALL] != NULL;
	int err = 0;

	reply_set(r, "arenas", json_array());
	if (glibc) {
		err = show_glibc(c, r, all, d);
	} else {
		reply_set(r, "total", json_null());
		reply_set(r, "parameters", json_null());
	}
	if (!err && jemalloc)
		err = show_jemalloc(c, r, all, glibc, d);
	return err;
}
