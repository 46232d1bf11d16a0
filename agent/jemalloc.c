// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jemalloc_call.h"
#include "jemalloc_detect.h"
#include "jemalloc_stats.h"

#define NAME_SIZE 128

/* Before 5.0 the number of arenas, used as an index, stood for all of them. */
static int all_index(struct process *p, const struct allocator *a, unsigned long *index,
		     struct diag *d)
{
	struct ctl_value v;
	unsigned version;
	int rc = jemalloc_version(p, a, &version, d);

	*index = JEMALLOC_ARENAS_ALL;
	if (rc || !version || version >= 0x050000)
		return rc;
	rc = jemalloc_ctl(p, a, "arenas.narenas", ctl_find("arenas.narenas"), NULL, &v, d);
	if (!rc)
		*index = v.u;
	return rc;
}

int jemalloc_purge(struct process *p, const struct allocator *a, long index, int *rc, uint64_t *ns,
		   char *call, size_t call_size, struct diag *d)
{
	unsigned long i = (unsigned long)index;
	const struct ctl_io nothing = { 0 };
	char name[NAME_SIZE];
	struct ctl_call io;
	struct call c;
	uint64_t fn = 0;
	int err = jemalloc_symbol(a, "mallctl", &fn, d);

	*rc = 0;
	if (!err && index == JEMALLOC_ALL)
		err = all_index(p, a, &i, d);
	if (!err)
		err = process_session(p, d);
	if (err)
		return err;
	snprintf(name, sizeof(name), "arena.%lu.purge", i);
	if (call)
		snprintf(call, call_size, "%s", name);
	err = ctl_call_name(p->session, fn, name, &nothing, &c, &io);
	if (err)
		diag_internal(d, err, "mallctl");
	else
		err = process_calls(p, &c, 1, d);
	if (!err) {
		*rc = (int)c.ret;
		if (ns)
			*ns = c.ns;
		if (*rc)
			err = jemalloc_refused(a, name, false, *rc, d);
	}
	if (p->session)
		session_scratch_reset(p->session);
	return err;
}

static int jemalloc_trim(struct process *p, const struct allocator *a, uint64_t pad,
			 struct trim_part *part, struct diag *d)
{
	int rc = 0, err;

	(void)pad; /* jemalloc keeps nothing */
	err = jemalloc_purge(p, a, JEMALLOC_ALL, &rc, &part->duration_ns, part->call,
			     sizeof(part->call), d);
	part->rc = rc;
	return err;
}

#define CUT_NOTE                                                                                   \
	"\n(cut here: there was no more room for it; ask for less, as in `stats --omit "           \
	"bins,large`)\n"

static int text_append(char **text, size_t len, const char *more)
{
	char *v = realloc(*text, len + strlen(more) + 1);

	if (!v)
		return -ENOMEM;
	memcpy(v + len, more, strlen(more) + 1);
	*text = v;
	return 0;
}

static int stats_call(struct process *p, uint64_t fn, const char *opts, char **text, struct diag *d)
{
	struct call c = { .fn = fn, .arg = { session_sink(p->session) } };
	bool cut = false;
	size_t len = 0;
	char *copy;
	int rc;

	if (opts) {
		copy = session_alloc(p->session, strlen(opts) + 1);
		if (!copy)
			return diag_internal(d, -ENOMEM, "scratch");
		memcpy(copy, opts, strlen(opts) + 1);
		c.arg[2] = session_addr(p->session, copy);
	}
	rc = process_calls(p, &c, 1, d);
	if (!rc)
		rc = session_output(p->session, 0, text, &len, &cut, d);
	if (!rc && cut && text_append(text, len, CUT_NOTE) < 0) {
		free(*text);
		*text = NULL;
		rc = diag_internal(d, -ENOMEM, "stats");
	}
	return rc;
}

/* malloc_stats_print(write_cb, cbopaque, opts). Words: option letters, then parts to leave out. */
static int jemalloc_stats(struct process *p, const struct allocator *a, int argc, char **argv,
			  char **text, struct diag *d)
{
	const char *letters = argc > 0 ? argv[0] : "", *omit = argc > 1 ? argv[1] : "";
	char opts[48] = "";
	unsigned version = 0;
	uint64_t fn = 0;
	int rc = stats_letters(letters, d);

	*text = NULL;
	snprintf(opts, sizeof(opts), "%s", letters);
	if (!rc && *omit)
		rc = jemalloc_version(p, a, &version, d);
	if (!rc && *omit)
		rc = stats_omit(omit, version, opts, sizeof(opts), d);
	if (!rc)
		rc = jemalloc_symbol(a, "malloc_stats_print", &fn, d);
	if (!rc)
		rc = process_session(p, d);
	if (rc)
		return rc;
	rc = stats_call(p, fn, opts, text, d);
	if (p->session)
		session_scratch_reset(p->session);
	return rc;
}

const struct allocator_ops jemalloc_ops = {
	.name = "jemalloc",
	.callable = true,
	.detect = jemalloc_detect,
	.stats = jemalloc_stats,
	.trim = jemalloc_trim,
};
