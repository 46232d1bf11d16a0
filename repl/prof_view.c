// SPDX-License-Identifier: GPL-3.0-or-later
#include "prof_view.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/call_text.h"
#include "../agent/load_file.h"
#include "../agent/process.h"
#include "context.h"
#include "prof.h"

#define INLINED	   64 /* functions at one address */
#define FILES_TOLD 4  /* files without names; more are counted */

static int read_text(struct context *c, const char *path, char **text, size_t *len, struct diag *d)
{
	unsigned char *bytes = NULL;
	int err;

	if (!path)
		return prof_take(c, text, len, d);
	err = load_file(path, PROFILE_TEXT_MAX, &bytes, len);
	*text = (char *)bytes;
	if (err == -ENOMEM)
		return diag_internal(d, err, "reading a heap profile");
	if (err)
		return diag_fail(d, err, HM_USAGE, "cannot-read",
				 "give the path of a heap profile that jemalloc or `prof dump` has "
				 "written",
				 "cannot read %.300s: %s", path, strerror(-err));
	return 0;
}

/* ---- names */

static size_t find(void *arg, uint64_t pc, struct symbol_frame *out, size_t max)
{
	return symbols_find(arg, pc, out, max);
}

static int no_calls(int err, const char *what, struct diag *d)
{
	if (err == -E2BIG)
		return profile_too_large(d, CALLS_SITES_MAX, "different addresses");
	return diag_internal(d, err, what);
}

static int prepare(const struct prof_view *v, struct diag *d)
{
	uint64_t *pcs;
	size_t n;
	int err = calls_lookups(v->profile, &pcs, &n);

	if (err)
		return no_calls(err, "the addresses of a heap profile", d);
	err = symbols_prepare(v->symbols, pcs, n, d);
	free(pcs);
	return err;
}

static int open_symbols(struct prof_view *v, bool places, struct diag *d)
{
	bool of_file = v->open == symbols_path_open; /* else the process itself says */
	const struct profile *p = v->profile;
	int err;

	v->map = calloc(p->maps + 1, sizeof(*v->map));
	if (!v->map)
		return diag_internal(d, -ENOMEM, "the mappings of a heap profile");
	for (size_t i = 0; i < p->maps; i++)
		v->map[i] = (struct symbol_map){
			.start = p->map[i].start,
			.end = p->map[i].end,
			.offset = p->map[i].offset,
			.path = p->map[i].path,
			.build_id = p->map[i].build_id,
			.inode = of_file ? p->map[i].inode : 0,
			.deleted = of_file && p->map[i].deleted,
		};
	err = symbols_new(v->map, p->maps, v->open, &v->live, &v->symbols, d);
	if (err)
		return err;
	if (!places)
		symbols_skip_places(v->symbols);
	return prepare(v, d);
}

static int resolve(struct context *c, bool of_file, enum call_names names, bool places,
		   struct prof_view *v, struct diag *d)
{
	struct call_source source = { .names = names };
	int err = 0;

	v->open = of_file ? symbols_path_open : symbols_live_open;
	if (!of_file)
		v->live = symbols_live_begin(&c->process->t, &c->process->maps);
	if (!v->profile->names) {
		err = open_symbols(v, places, d);
		source.find = find;
		source.arg = v->symbols;
	}
	if (err)
		return err;
	err = calls_make(v->profile, &source, &v->calls);
	return err ? no_calls(err, "the functions of a heap profile", d) : 0;
}

/* ---- files and lines of a few rows */

/* The at-th of the functions that have a name. */
static const struct symbol_frame *named(const struct symbol_frame *f, size_t n, uint32_t at)
{
	for (size_t i = 0; i < n; i++)
		if (f[i].name && at-- == 0)
			return &f[i];
	return NULL;
}

static int place_row(struct prof_view *v, struct symbols *s, struct top_row *row)
{
	struct symbol_frame frame[INLINED] = { 0 };
	const struct symbol_frame *f =
		named(frame, symbols_find(s, row->pc, frame, INLINED), row->at);
	char clean[PATH_MAX], *copy;

	if (!f || !f->file)
		return 0;
	call_text_clean(f->file, clean, sizeof(clean));
	copy = pool_take(v->places, strlen(clean) + 1);
	if (!copy)
		return -ENOMEM;
	row->file = strcpy(copy, clean);
	row->line = f->line;
	return 0;
}

static int place_rows(struct prof_view *v, const uint64_t *pcs, struct top_row *row, size_t n,
		      struct diag *d)
{
	struct symbols *s = NULL;
	int err = symbols_new(v->map, v->profile->maps, v->open, &v->live, &s, d);

	if (!err)
		err = symbols_prepare(s, pcs, n, d);
	for (size_t i = 0; i < n && !err; i++)
		if (place_row(v, s, &row[i]))
			err = diag_internal(d, -ENOMEM, "the lines of a heap profile");
	symbols_free(s);
	return err;
}

int prof_view_places(struct prof_view *v, struct top_row *row, size_t n, struct diag *d)
{
	uint64_t *pcs;
	int err;

	if (!v->symbols)
		return 0;
	v->places = pool_new();
	pcs = calloc(n + 1, sizeof(*pcs));
	if (!v->places || !pcs) {
		free(pcs);
		return diag_internal(d, -ENOMEM, "the lines of a heap profile");
	}
	for (size_t i = 0; i < n; i++)
		pcs[i] = row[i].pc;
	err = place_rows(v, pcs, row, n, d);
	free(pcs);
	return err;
}

/* ---- build-ids */

const char *prof_view_build_id(void *arg, size_t map)
{
	const struct prof_view *v = arg;
	const char *own = v->profile->map[map].build_id;

	return own || !v->symbols ? own : symbols_build_id(v->symbols, map);
}

/* ---- what is wrong with it */

static bool is_telling(enum symbols_state s, int error)
{
	return s == SYMBOLS_GONE || s == SYMBOLS_CHANGED || s == SYMBOLS_BAD || s == SYMBOLS_NONE ||
	       s == SYMBOLS_MEMORY || s == SYMBOLS_DAMAGED || (s == SYMBOLS_NAMES && error);
}

static bool is_told(const char *const *told, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(told[i], path) == 0)
			return true;
	return false;
}

static void tell_file(struct context *c, struct reply *r, const char *path, enum symbols_state s,
		      int error)
{
	char clean[300]; /* whoever has written the profile has chosen the path */

	call_text_clean(path, clean, sizeof(clean));
	if (!is_telling(s, error))
		reply_warn(c, r, "other-file",
			   "%s: has another inode than the file that was mapped: names are of the "
			   "file that is there now, and wrong if it is not the same",
			   clean);
	else
		reply_warn(c, r, "no-names", "%s: %s%s%s", clean, symbols_state_text(s),
			   error ? ": " : "", error ? strerror(-error) : "");
}

static void tell_files(struct context *c, struct reply *r, const struct prof_view *v)
{
	const char *told[FILES_TOLD];
	size_t more = 0, n = 0;

	for (size_t i = 0; v->symbols && i < v->profile->maps; i++) {
		const char *path = v->map[i].path;
		int error = 0;
		enum symbols_state s = symbols_state(v->symbols, i, &error);

		if (!(is_telling(s, error) || symbols_other_inode(v->symbols, i)) ||
		    is_told(told, n, path))
			continue;
		if (n == FILES_TOLD) {
			more++;
			continue;
		}
		tell_file(c, r, path, s, error);
		told[n++] = path;
	}
	if (more)
		reply_warn(c, r, "no-names",
			   "%zu more mappings are without names, or of other files now", more);
}

static void tell(struct context *c, struct reply *r, const struct prof_view *v)
{
	const struct profile *p = v->profile;

	if (p->cut)
		reply_warn(c, r, "profile-cut",
			   "the profile is cut: it ends before its mappings, or in the middle of a "
			   "stack");
	if (p->odd)
		reply_warn(c, r, "profile-odd",
			   "%zu lines of the profile are no records, and were left out", p->odd);
	tell_files(c, r, v);
	if (v->calls->unknown)
		context_verbose(c, "%zu of %zu addresses have no name", v->calls->unknown,
				v->calls->sites);
}

/* Of the profile that has been read. */
static int view_names(struct context *c, struct reply *r, bool of_file, enum call_names names,
		      bool places, struct prof_view *v, struct diag *d)
{
	int err = resolve(c, of_file, names, places, v, d);

	if (err)
		prof_view_close(v);
	else
		tell(c, r, v);
	return err;
}

int prof_view_text(struct context *c, struct reply *r, const char *text, size_t len,
		   enum call_names names, struct prof_view *v, struct diag *d)
{
	int err;

	*v = (struct prof_view){ .profile = NULL };
	err = profile_parse(text, len, &v->profile, d);
	return err ? err : view_names(c, r, false, names, false, v, d);
}

int prof_view_open(struct context *c, struct reply *r, const char *path, enum call_names names,
		   bool places, struct prof_view *v, struct diag *d)
{
	char *text = NULL;
	size_t len = 0;
	int err = read_text(c, path, &text, &len, d);

	*v = (struct prof_view){ .profile = NULL };
	if (!err)
		err = profile_parse(text, len, &v->profile, d);
	free(text); /* before the rest, which takes as much */
	return err ? err : view_names(c, r, path != NULL, names, places, v, d);
}

void prof_view_close(struct prof_view *v)
{
	calls_free(v->calls);
	symbols_free(v->symbols);
	free(v->map);
	pool_free(v->places);
	profile_free(v->profile);
	*v = (struct prof_view){ .profile = NULL };
}
