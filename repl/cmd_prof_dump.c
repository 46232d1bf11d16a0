// SPDX-License-Identifier: GPL-3.0-or-later
/* prof dump, and the profile for those that look at one. */
#include "prof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../agent/jemalloc_prof.h"
#include "../agent/outfile.h"
#include "context.h"
#include "prof_view.h"
#include "written.h"

static bool is_profile(const unsigned char *head, size_t n)
{
	static const char *const first[] = { "heap_v2/", "--- symbol", "heap profile:" };

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		if (n >= strlen(first[i]) && memcmp(head, first[i], strlen(first[i])) == 0)
			return true;
	return false;
}

static const struct outfile_kind profile_kind = { "heap profile", is_profile, false };

static int take(struct context *c, struct reply *r, char **data, size_t *len, uint64_t *ns,
		struct diag *d)
{
	const struct allocator *jemalloc;
	struct prof_state s;
	int err = prof_jemalloc(c, r, &jemalloc, d);

	*data = NULL;
	*len = 0;
	if (!err)
		err = jemalloc_prof_require(c->process, jemalloc, &s, d);
	if (!err)
		err = jemalloc_prof_dump(c->process, jemalloc, data, len, ns, d);
	/* what is done with it may take its time, and nobody waits for our thread meanwhile */
	if (!err)
		context_park(c);
	return err;
}

int prof_take(struct context *c, char **data, size_t *len, struct diag *d)
{
	uint64_t ns;

	return take(c, NULL, data, len, &ns, d);
}

/*
 * Puts the names before it, while the files that have them are there. What was brought here is kept
 * where that fails: false, and it is warned of.
 */
static bool symbolise(struct context *c, struct reply *r, enum call_names names, char **data,
		      size_t *len)
{
	struct bytes out = { 0 };
	struct prof_view v;
	struct diag d;

	diag_clear(&d);
	if (prof_view_text(c, r, *data, *len, names, &v, &d)) {
		reply_warn(c, r, "no-names", "the profile is saved without names: %s", d.text);
		return false;
	}
	calls_symbol_section(v.calls, prof_view_build_id, &v, &out);
	prof_view_close(&v);
	bytes_put(&out, *data, *len);
	if (out.failed) {
		bytes_free(&out);
		reply_warn(c, r, "no-names", "the profile is saved without names: no memory");
		return false;
	}
	free(*data);
	*data = out.v;
	*len = out.len;
	return true;
}

static void answer(struct context *c, struct reply *r, const char *path, size_t len, bool named,
		   uint64_t ns)
{
	char size[SIZE_TEXT], time[SIZE_TEXT];
	FILE *out = c->sink->out;

	reply_set(r, "file", json_text(path, strlen(path)));
	reply_set(r, "bytes", json_u64(len));
	reply_set(r, "symbolised", json_boolean(named));
	reply_set(r, "duration_us", json_u64(ns / 1000));
	if (c->set.json)
		return;
	fprintf(out, "the profile of %s (pid %d) is saved in ", c->comm, (int)c->pid);
	sink_text(out, path, strlen(path));
	fprintf(out, ": %s, the call took %s\n", text_size(size, len, c->set.bytes),
		time_format(ns, time));
}

static int plan(struct context *c, struct reply *r, const char *path)
{
	if (c->set.json) {
		reply_set(r, "dry_run", json_true());
		reply_set(r, "file", json_text(path, strlen(path)));
		return 0;
	}
	fputs("would save the profile in ", c->sink->out);
	sink_text(c->sink->out, path, strlen(path));
	fprintf(c->sink->out, "%s\n", context_undone(c));
	return 0;
}

int prof_dump(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const char *path = a->argv[1];
	enum call_names names = a->opt[PROF_MANGLED] ? CALL_NAMES_MANGLED : CALL_NAMES_FULL;
	bool force = a->opt[PROF_FORCE] != NULL, named;
	uint64_t ns = 0;
	char *data;
	size_t len;
	/* nothing is asked of the target for a file that cannot be written */
	int err = outfile_check(path, &profile_kind, force, d);

	if (!err)
		err = written_check(c->written, path, c->pid, d);
	if (!err && c->set.dry_run)
		return plan(c, r, path);
	if (!err)
		err = take(c, r, &data, &len, &ns, d);
	if (err)
		return err;
	named = !a->opt[PROF_RAW] && symbolise(c, r, names, &data, &len);
	err = outfile_save(path, data, len, &profile_kind, force, d);
	if (!err) {
		written_note(c->written, path, c->pid);
		answer(c, r, path, len, named, ns);
	}
	free(data);
	return err;
}
