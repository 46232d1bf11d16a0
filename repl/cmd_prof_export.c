// SPDX-License-Identifier: GPL-3.0-or-later
#include "prof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/call_tree.h"
#include "../agent/flame.h"
#include "../agent/outfile.h"
#include "../agent/pprof.h"
#include "../agent/profile_top.h"
#include "context.h"
#include "prof_view.h"
#include "written.h"

/* What a name's end asks for. */
struct format {
	const char *suffix, *name;
	bool places; /* it has files and lines */
	int (*make)(struct prof_view *v, struct bytes *out);
};

static int make_pprof(struct prof_view *v, struct bytes *out)
{
	struct pprof_extra extra = { .build_id = prof_view_build_id, .arg = v };
	unsigned char *bytes;
	int err = pprof_encode(v->calls, &extra, &bytes, &out->len);

	if (!err)
		out->v = (char *)bytes;
	return err;
}

static int make_folded(struct prof_view *v, struct bytes *out)
{
	struct call_tree tree;
	int err = call_tree_make(v->calls, &tree);

	if (err)
		return err;
	call_tree_folded(v->calls, &tree, out);
	call_tree_free(&tree);
	return out->failed ? -ENOMEM : 0;
}

static int make_svg(struct prof_view *v, struct bytes *out)
{
	char title[100], live[SIZE_TEXT];
	struct call_tree tree;
	int err = call_tree_make(v->calls, &tree);

	if (err)
		return err;
	snprintf(title, sizeof(title), "%s live, %zu stacks",
		 size_format(profile_round(v->profile->total.live_bytes), live),
		 v->profile->stacks);
	err = flame_svg(v->calls, &tree, title, out);
	call_tree_free(&tree);
	return err;
}

static int make_text(struct prof_view *v, struct bytes *out)
{
	struct profile_top top;
	int err = profile_top_make(v->calls, false, &top);

	if (err)
		return err;
	profile_top_text(&top, v->profile, out);
	profile_top_free(&top);
	return out->failed ? -ENOMEM : 0;
}

static const struct format formats[] = {
	{ ".pb.gz", "pprof", true, make_pprof },
	{ ".folded", "folded", false, make_folded },
	{ ".svg", "flame graph", false, make_svg },
	{ ".txt", "text", true, make_text },
};

static const struct format *format_of(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t n = strlen(formats[i].suffix);

		if (len > n && strcmp(path + len - n, formats[i].suffix) == 0)
			return &formats[i];
	}
	return NULL;
}

static int need_format(const char *path, const struct format **out, struct diag *d)
{
	*out = format_of(path);
	if (*out)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-suffix",
			 "FILE.pb.gz is for pprof, FILE.svg a flame graph, FILE.folded and "
			 "FILE.txt are text",
			 "prof export: the end of '%.100s' says no format", path);
}

int check_prof_export(const struct args *a, struct diag *d)
{
	const struct format *f;

	return need_format(a->argv[1], &f, d);
}

/* Nobody can tell such a file from somebody else's: none is replaced unasked. */
static bool never(const unsigned char *head, size_t n)
{
	(void)head;
	(void)n;
	return false;
}

static const struct outfile_kind none = { "file to be replaced unasked", never, false };

static int save(const struct args *a, const struct format *f, struct prof_view *v, size_t *len,
		struct diag *d)
{
	struct bytes out = { .v = NULL };
	int err = f->make(v, &out);

	if (err == -EFBIG)
		err = diag_fail(d, err, HM_USAGE, "profile-too-large",
				"FILE.pb.gz or FILE.txt; or sample less (lg_prof_sample)",
				"the tree of all stacks has more than %zu functions",
				CALL_TREE_NODES);
	else if (err)
		err = diag_internal(d, err, f->name);
	else
		err = outfile_save(a->argv[1], out.v, out.len, &none, a->opt[PROF_FORCE] != NULL,
				   d);
	*len = out.len;
	bytes_free(&out);
	return err;
}

static void answer(const struct context *c, struct reply *r, const char *path,
		   const struct format *f, size_t len, const struct profile *p)
{
	char size[SIZE_TEXT], live[SIZE_TEXT];
	FILE *out = c->sink->out;

	reply_set(r, "file", json_text(path, strlen(path)));
	reply_set(r, "bytes", json_u64(len));
	reply_set(r, "format", json_string(f->name));
	reply_set(r, "total_bytes", json_u64(profile_round(p->total.live_bytes)));
	reply_set(r, "stacks", json_u64(p->stacks));
	if (c->set.json)
		return;
	fprintf(out, "%s live in %zu stacks, as %s, is in ",
		text_size(live, profile_round(p->total.live_bytes), c->set.bytes), p->stacks,
		f->name);
	sink_text(out, path, strlen(path));
	fprintf(out, ": %s\n", text_size(size, len, c->set.bytes));
}

int prof_export(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	enum call_names names = a->opt[PROF_MANGLED] ? CALL_NAMES_MANGLED : CALL_NAMES_BRIEF;
	const struct format *f;
	struct prof_view v;
	size_t len;
	int err = need_format(a->argv[1], &f, d);

	if (err)
		return err;
	/* before the target is asked for anything */
	err = outfile_check(a->argv[1], &none, a->opt[PROF_FORCE] != NULL, d);
	if (!err)
		err = written_check(c->written, a->argv[1], c->pid, d);
	if (!err)
		err = prof_view_open(c, r, a->opt[PROF_FILE], names, f->places, &v, d);
	if (err)
		return err;
	err = save(a, f, &v, &len, d);
	if (!err) {
		written_note(c->written, a->argv[1], c->pid);
		answer(c, r, a->argv[1], f, len, v.profile);
	}
	prof_view_close(&v);
	return err;
}
