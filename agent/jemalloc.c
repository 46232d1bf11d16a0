// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/mem.h"
#include "../inject/status.h"
#include "ctl_rule.h"
#include "jemalloc_detect.h"
#include "jemalloc_missing.h"

/* MALLCTL_ARENAS_ALL: the index that stands for all arenas, since 5.0. */
#define ARENAS_ALL 4096
#define NAME_SIZE  128

static int jemalloc_symbol(const struct allocator *a, const char *name, uint64_t *addr,
			   struct diag *d)
{
	char full[64];
	struct symbol s;

	if (a->reach)
		return jemalloc_unreachable(a, d);
	snprintf(full, sizeof(full), "%s%s", a->prefix, name);
	if (module_function(a->mod, full, &s) < 0)
		return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol",
				 "`check` shows which allocators the target has",
				 "the target's jemalloc has no symbol %s", full);
	*addr = s.addr;
	return 0;
}

/* One mallctl of a batch: pointers into the session's scratch. */
struct ctl_call {
	unsigned char *old; /* 8 bytes, NULL: nothing is read */
	uint64_t *old_len;
	unsigned char *new; /* 8 bytes, NULL: nothing is written */
};

/*
 * int mallctl(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen). jemalloc
 * refuses sizes that are not exactly those of the type.
 */
static int ctl_prepare(struct session *s, uint64_t fn, const char *name, bool read, bool write,
		       size_t size, struct call *c, struct ctl_call *io)
{
	size_t len = strlen(name) + 1;
	char *text = session_alloc(s, len);

	*io = (struct ctl_call){ 0 };
	if (!text)
		return -ENOMEM;
	memcpy(text, name, len);
	*c = (struct call){ .fn = fn, .arg = { session_addr(s, text) } };
	if (read) {
		io->old = session_alloc(s, 8);
		io->old_len = session_alloc(s, sizeof(*io->old_len));
		if (!io->old || !io->old_len)
			return -ENOMEM;
		*io->old_len = size;
		c->arg[1] = session_addr(s, io->old);
		c->arg[2] = session_addr(s, io->old_len);
	}
	if (write) {
		io->new = session_alloc(s, 8);
		if (!io->new)
			return -ENOMEM;
		c->arg[3] = session_addr(s, io->new);
		c->arg[4] = size;
	}
	return 0;
}

/* Puts the value where the call's newp points to. A string is passed as a pointer to a pointer. */
static int value_place(struct session *s, const struct ctl_value *v, unsigned char *new)
{
	uint64_t addr;
	char *text;

	if (v->type != CTL_STRING)
		return ctl_value_encode(v, new);
	text = session_alloc(s, strlen(v->text) + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, v->text, strlen(v->text) + 1);
	addr = session_addr(s, text);
	memcpy(new, &addr, sizeof(addr));
	return 0;
}

/* The value that a read has left. A string is the target's: read within bounds, escaped. */
static int value_take(const struct process *p, const struct ctl_name *row,
		      const struct ctl_call *io, struct ctl_value *out, struct diag *d)
{
	char raw[sizeof(out->text)];
	uint64_t addr;
	int rc;

	if (*io->old_len != ctl_size(row->type))
		return diag_fail(d, -EPROTO, HM_CALL_FAILED, "mallctl-size",
				 "this jemalloc has another type there; `stats` prints it too",
				 "%s: mallctl returned %llu bytes, a %s has %zu", row->name,
				 (unsigned long long)*io->old_len, row->ctype, ctl_size(row->type));
	if (row->type != CTL_STRING)
		return ctl_value_decode(row->type, io->old, out);
	*out = (struct ctl_value){ .type = CTL_STRING };
	memcpy(&addr, io->old, sizeof(addr));
	if (!addr)
		return 0;
	rc = mem_read_str(p->t.pid, addr, raw, sizeof(raw));
	if (rc == -ENAMETOOLONG)
		raw[sizeof(raw) - 1] = '\0';
	else if (rc)
		return diag_fail(d, rc, HM_CALL_FAILED, "mallctl-string",
				 "try again; `stats` prints it too",
				 "%s: the string at %#llx cannot be read", row->name,
				 (unsigned long long)addr);
	escape_copy(out->text, sizeof(out->text), raw, strlen(raw));
	return 0;
}

static unsigned version_of(const struct allocator *a)
{
	return ctl_version(a->version);
}

/* Writes the number that jemalloc has for all arenas in place of the index "all". */
static int name_resolve(const struct allocator *a, const char *name, char out[NAME_SIZE],
			struct diag *d)
{
	const char *all = strstr(name, ".all");
	unsigned v = version_of(a);

	if (strlen(name) >= NAME_SIZE - 8)
		return ctl_unknown(name, d);
	if (!all || (all[4] != '.' && all[4])) {
		snprintf(out, NAME_SIZE, "%s", name);
		return 0;
	}
	if (v && v < 0x050000)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "mallctl-version",
				 "give the number of one arena",
				 "jemalloc %s has no index for all arenas: it came with 5.0",
				 a->version);
	snprintf(out, NAME_SIZE, "%.*s.%d%s", (int)(all - name), name, ARENAS_ALL, all + 4);
	return 0;
}

enum { CTL_EPOCH, CTL_OLD, CTL_NEW, CTL_CALLS };

/* A mallctl as a batch: epoch where statistics are read, then the read, then the write. */
struct batch {
	struct call call[CTL_CALLS];
	struct ctl_call io[CTL_CALLS];
	int at[CTL_CALLS]; /* index into call, -1: not part of it */
	size_t n;
};

static int batch_add(struct process *p, struct batch *b, int what, uint64_t fn, const char *name,
		     bool read, const struct ctl_value *value, size_t size)
{
	struct ctl_call *io = &b->io[b->n];
	int rc = ctl_prepare(p->session, fn, name, read, value != NULL, size, &b->call[b->n], io);

	if (!rc && value)
		rc = value_place(p->session, value, io->new);
	b->at[what] = (int)b->n++;
	return rc;
}

static int batch_fill(struct process *p, struct batch *b, uint64_t fn, const char *name,
		      const struct ctl_name *row, const struct ctl_value *value)
{
	const struct ctl_value one = { .type = CTL_U64, .u = 1 };
	size_t size = ctl_size(row->type);
	int rc = 0;

	*b = (struct batch){ .at = { -1, -1, -1 } };
	if (!strncmp(name, "stats.", 6))
		rc = batch_add(p, b, CTL_EPOCH, fn, "epoch", false, &one, 8);
	if (!rc && row->access & CTL_READ)
		rc = batch_add(p, b, CTL_OLD, fn, name, true, NULL, size);
	if (!rc && (value || row->type == CTL_VOID))
		rc = batch_add(p, b, CTL_NEW, fn, name, false, value, size);
	return rc;
}

static int batch_result(struct process *p, const struct allocator *a, struct batch *b,
			const char *name, const struct ctl_name *row, const struct ctl_value *value,
			struct ctl_value *old, struct diag *d)
{
	int rc = 0;

	if (b->at[CTL_NEW] >= 0)
		rc = (int)b->call[b->at[CTL_NEW]].ret;
	if (rc)
		return ctl_error(row, name, a->version, value != NULL, rc, d);
	if (b->at[CTL_OLD] < 0)
		return 0;
	rc = (int)b->call[b->at[CTL_OLD]].ret;
	/* A name that is written by itself may have nothing to read yet. */
	if (rc)
		return value ? 0 : ctl_error(row, name, a->version, false, rc, d);
	return old ? value_take(p, row, &b->io[b->at[CTL_OLD]], old, d) : 0;
}

int jemalloc_ctl(struct process *p, const struct allocator *a, const char *name,
		 const struct ctl_name *row, const struct ctl_value *value, struct ctl_value *old,
		 struct diag *d)
{
	char full[NAME_SIZE];
	struct batch b;
	uint64_t fn = 0;
	int rc;

	if (old)
		*old = (struct ctl_value){ .type = CTL_VOID };
	if (!row)
		return ctl_unknown(name, d);
	rc = ctl_check(row, name, value != NULL, d);
	if (!rc && value)
		rc = ctl_check_value(row, value, d);
	if (!rc)
		rc = name_resolve(a, name, full, d);
	if (!rc)
		rc = jemalloc_symbol(a, "mallctl", &fn, d);
	if (!rc)
		rc = process_session(p, d);
	if (rc)
		return rc;
	rc = batch_fill(p, &b, fn, full, row, value);
	if (rc)
		diag_internal(d, rc, "mallctl");
	else
		rc = process_calls(p, b.call, b.n, d);
	if (!rc)
		rc = batch_result(p, a, &b, full, row, value, old, d);
	if (p->session)
		session_scratch_reset(p->session);
	return rc;
}

/* Before 5.0 the number of arenas, used as an index, stood for all of them. */
static int all_index(struct process *p, const struct allocator *a, unsigned long *index,
		     struct diag *d)
{
	struct ctl_value v;
	int rc;
	unsigned version = version_of(a);

	*index = ARENAS_ALL;
	if (!version) {
		rc = jemalloc_ctl(p, a, "version", ctl_find("version"), NULL, &v, d);
		if (rc)
			return rc;
		version = ctl_version(v.text);
	}
	if (!version || version >= 0x050000)
		return 0;
	rc = jemalloc_ctl(p, a, "arenas.narenas", ctl_find("arenas.narenas"), NULL, &v, d);
	if (!rc)
		*index = v.u;
	return rc;
}

int jemalloc_purge(struct process *p, const struct allocator *a, long index, int *rc, uint64_t *ns,
		   char *call, size_t call_size, struct diag *d)
{
	unsigned long i = (unsigned long)index;
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
	err = ctl_prepare(p->session, fn, name, false, false, 0, &c, &io);
	if (err)
		diag_internal(d, err, "mallctl");
	else
		err = process_calls(p, &c, 1, d);
	if (!err) {
		*rc = (int)c.ret;
		if (ns)
			*ns = c.ns;
		if (*rc)
			err = ctl_error(ctl_find("arena.<i>.purge"), name, a->version, false, *rc,
					d);
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
	"\n(cut here: there was no more room for it; give options for less, as in `stats abl`)\n"

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

/* malloc_stats_print(write_cb, cbopaque, opts); the options are letters. */
static int jemalloc_stats(struct process *p, const struct allocator *a, int argc, char **argv,
			  char **text, struct diag *d)
{
	const char *opts = argc > 0 ? argv[0] : NULL;
	uint64_t fn = 0;
	int rc;

	*text = NULL;
	if (argc > 1 || (opts && (strlen(opts) > 32 ||
				  opts[strspn(opts, "abcdefghijklmnopqrstuvwxyzJ")] != '\0')))
		return diag_fail(d, -EINVAL, HM_USAGE, "usage",
				 "letters of malloc_stats_print: J for JSON, g m d a b l x e h to "
				 "leave parts out",
				 "stats takes one word of option letters for jemalloc");
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
