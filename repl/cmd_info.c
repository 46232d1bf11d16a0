// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/glibc.h"
#include "../agent/glibc_info_xml.h"
#include "context.h"
#include "script.h"

#define ROWS_SHOWN 20

unsigned effect_info(const struct args *a)
{
	return a->opt[INFO_FILE] ? CMD_PASSIVE | CMD_NO_PROCESS : CMD_CALLS;
}

static const struct column columns[] = {
	{ "ARENA", true }, { "SYSTEM", true }, { "IN USE", true },   { "FREE", true },
	{ "FAST", true },  { "MAX", true },    { "SUBHEAPS", true }, { "FLAGS", false },
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* The words of all flags with commas between them. */
static void flag_words(unsigned flags, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned bit = 1; bit && bit <= flags; bit <<= 1) {
		int n;

		if (!(flags & bit) || !*info_flag_name(bit))
			continue;
		n = snprintf(buf + used, size - used, "%s%s", used ? "," : "", info_flag_name(bit));
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

static void arena_row(struct table *t, const struct info_arena *a, bool total, bool bytes)
{
	char cell[7][SIZE_TEXT], flags[160];
	const char *cells[COLUMNS] = {
		total ? "total" : cell[0],
		text_size(cell[1], a->system, bytes),
		text_size(cell[2], a->in_use, bytes),
		text_size(cell[3], a->free, bytes),
		text_size(cell[4], a->fast, bytes),
		text_size(cell[5], a->max, bytes),
		cell[6],
		flags,
	};

	snprintf(cell[0], SIZE_TEXT, "%u", a->index);
	snprintf(cell[6], SIZE_TEXT, "%u", a->subheaps);
	flag_words(a->flags, flags, sizeof(flags));
	table_row(t, cells);
}

static int print_info(const struct context *c, const struct glibc_info *info, bool all)
{
	size_t shown = all || info->arenas < ROWS_SHOWN ? info->arenas : ROWS_SHOWN;
	struct table *t = table_new(columns, COLUMNS);
	char size[SIZE_TEXT];
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < shown; i++)
		arena_row(t, &info->arena[i], false, c->set.bytes);
	arena_row(t, &info->total, true, c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	if (shown < info->arenas)
		fprintf(c->sink->out, "and %zu more arenas (info --all)\n", info->arenas - shown);
	fprintf(c->sink->out, "mmapped %s in %" PRIu64 " blocks\n",
		text_size(size, info->mmapped, c->set.bytes), info->mmapped_count);
	return err;
}

static json_t *flags_json(struct reply *r, unsigned flags)
{
	json_t *o = json_array();

	for (unsigned bit = 1; bit && bit <= flags; bit <<= 1)
		if ((flags & bit) && *info_flag_name(bit) &&
		    json_array_append_new(o, json_string(info_flag_name(bit))))
			r->failed = true;
	return o;
}

static json_t *arena_json(struct reply *r, const struct info_arena *a, bool total)
{
	json_t *o = json_object();

	if (!total)
		reply_member(r, o, "index", json_integer(a->index));
	reply_member(r, o, "system_bytes", json_u64(a->system));
	reply_member(r, o, "in_use_bytes", json_u64(a->in_use));
	reply_member(r, o, "free_bytes", json_u64(a->free));
	reply_member(r, o, "fast_bytes", json_u64(a->fast));
	reply_member(r, o, "max_bytes", json_u64(a->max));
	reply_member(r, o, "subheaps", json_integer(a->subheaps));
	reply_member(r, o, "flags", flags_json(r, a->flags));
	return o;
}

static void reply_info(struct reply *r, const struct glibc_info *info)
{
	json_t *arenas = json_array(), *total = arena_json(r, &info->total, true);

	for (size_t i = 0; i < info->arenas; i++)
		if (json_array_append_new(arenas, arena_json(r, &info->arena[i], false)))
			r->failed = true;
	reply_member(r, total, "mmapped_bytes", json_u64(info->mmapped));
	reply_member(r, total, "mmapped_count", json_u64(info->mmapped_count));
	reply_set(r, "arenas", arenas);
	reply_set(r, "total", total);
}

static int by_size(const void *a, const void *b)
{
	const struct info_arena *x = a, *y = b;

	if (x->system != y->system)
		return x->system < y->system ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static int show_info(struct context *c, const struct args *a, struct reply *r, const char *text,
		     size_t len, struct diag *d)
{
	struct glibc_info info;
	int err = glibc_info_parse(text, len, &info, d);

	if (err)
		return err;
	if (info.arenas)
		qsort(info.arena, info.arenas, sizeof(*info.arena), by_size);
	if (c->set.json)
		reply_info(r, &info);
	else if (print_info(c, &info, a->opt[INFO_ALL] != NULL))
		err = diag_internal(d, -ENOMEM, "the table");
	glibc_info_free(&info);
	return err;
}

static int read_target(struct context *c, char **text, size_t *len, struct diag *d)
{
	const struct allocator *glibc = process_allocator(c->process, "glibc");

	if (!glibc)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-glibc-malloc",
				 "`check` lists the allocators; `stats` asks those that are used",
				 "%s does not allocate with glibc", c->comm);
	return glibc_malloc_info(c->process, glibc, text, len, d);
}

int cmd_info(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	char *text = NULL;
	size_t len = 0;
	int err;

	if (a->opt[INFO_FILE])
		err = script_read(a->opt[INFO_FILE], &text, &len, d);
	else
		err = read_target(c, &text, &len, d);
	if (err)
		return err;
	if (!a->opt[INFO_RAW])
		err = show_info(c, a, r, text, len, d);
	else if (c->set.json)
		reply_set(r, "text", json_text(text, len));
	else
		sink_text(c->sink->out, text, len);
	free(text);
	return err;
}
