// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/snapshot.h"
#include "context.h"
#include "fact_text.h"
#include "written.h"

/* Its bytes go where text goes, and nothing may come between them. */
static int check_stdout(const struct context *c, struct diag *d)
{
	if (c->set.json)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "give a FILE, or no --json",
				 "the snapshot and its JSON cannot both go to stdout");
	if (sink_is_terminal(c->sink))
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "give a FILE, or redirect it",
				 "a snapshot is compressed, and stdout is a terminal");
	return 0;
}

static void answer(struct context *c, struct reply *r, const struct snapshot *s, const char *path,
		   size_t len)
{
	char size[SIZE_TEXT], rss[SIZE_TEXT];
	FILE *out = c->sink->out;

	reply_set(r, "file", json_text(path, strlen(path)));
	reply_set(r, "bytes", json_u64(len));
	if (c->set.dry_run)
		reply_set(r, "dry_run", json_true());
	if (c->set.json)
		return;
	fprintf(out, "%s (pid %d), rss %s, %s saved in ", s->comm, (int)s->pid,
		text_size(rss, s->look.memory.usage.rss, c->set.bytes),
		c->set.dry_run ? "would be" : "is");
	sink_text(out, path, strlen(path));
	fprintf(out, ": %s\n", text_size(size, len, c->set.bytes));
}

/* To stdout, or, but for a dry run, into the file. */
static int save(struct context *c, const struct args *a, struct reply *r, const struct snapshot *s,
		struct diag *d)
{
	unsigned char *bytes = NULL;
	size_t len = 0;
	int err = snapshot_encode(s, &bytes, &len);

	if (err)
		return diag_internal(d, err, "the snapshot");
	if (strcmp(a->argv[0], "-") == 0) {
		/* what is not written shows in sink_flush */
		(void)!fwrite(bytes, 1, len, c->sink->out);
	} else {
		if (!c->set.dry_run)
			err = snapshot_save(a->argv[0], bytes, len, a->opt[SNAPSHOT_FORCE] != NULL,
					    d);
		if (!err && !c->set.dry_run)
			written_note(c->written, a->argv[0], c->pid);
		if (!err)
			answer(c, r, s, a->argv[0], len);
	}
	free(bytes);
	return err;
}

int cmd_snapshot(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	bool force = a->opt[SNAPSHOT_FORCE] != NULL;
	struct snapshot s;
	int err = strcmp(a->argv[0], "-") == 0 ? check_stdout(c, d)
					       : snapshot_place(a->argv[0], force, d);

	if (!err)
		err = written_check(c->written, a->argv[0], c->pid, d);
	if (!err)
		err = snapshot_take(c->process, !c->set.passive, &s, d);
	if (err)
		return err;
	err = save(c, a, r, &s, d);
	if (!err)
		look_warn(c, r, &s.look, true);
	snapshot_free(&s);
	return err;
}
