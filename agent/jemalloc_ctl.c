// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_ctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_error.h"
#include "ctl_path.h"
#include "ctl_rule.h"
#include "jemalloc_call.h"
#include "jemalloc_conf.h"
#include "jemalloc_signs.h"

#define NAME_SIZE 128

/* ---- many names at once */

#define ASK_BATCH 48 /* of SESSION_MAX_CALLS; each takes some 150 bytes of scratch */

/* Writing any number to it renews the statistics; it answers with their number. */
static int epoch_prepare(struct session *s, uint64_t fn, struct call *c, struct ctl_call *io)
{
	const struct ctl_io both = { .read = true, .write = true, .size = 8 };
	const struct ctl_value one = { .type = CTL_U64, .u = 1 };
	int rc = ctl_call_name(s, fn, "epoch", &both, c, io);

	return rc ? rc : ctl_call_place(s, &one, io);
}

static void epoch_take(const struct call *c, const struct ctl_call *io, struct ctl_fresh *out)
{
	*out = (struct ctl_fresh){ .known = (int)c->ret == 0 && *io->old_len == 8 };
	if (out->known)
		memcpy(&out->epoch, io->old, 8);
	clock_gettime(CLOCK_REALTIME, &out->at);
}

static void ask_take(const struct process *p, const struct call *c, const struct ctl_call *io,
		     struct ctl_ask *v)
{
	v->rc = (int)c->ret;
	if (v->rc == 0)
		v->rc = -ctl_call_take(p, v->row->type, io, &v->value);
}

static int ask_batch(struct process *p, uint64_t fn, struct ctl_ask *v, size_t n,
		     struct ctl_fresh *fresh, struct diag *d)
{
	struct call call[ASK_BATCH + 1];
	struct ctl_call io[ASK_BATCH + 1];
	size_t first = fresh ? 1 : 0;
	int rc = fresh ? epoch_prepare(p->session, fn, &call[0], &io[0]) : 0;

	for (size_t i = 0; !rc && i < n; i++) {
		const struct ctl_io read = { .read = true, .size = ctl_size(v[i].row->type) };

		rc = ctl_call_name(p->session, fn, v[i].name, &read, &call[first + i],
				   &io[first + i]);
	}
	if (rc)
		return diag_internal(d, rc, "mallctl");
	rc = process_calls(p, call, first + n, d);
	if (rc)
		return rc;
	if (fresh)
		epoch_take(&call[0], &io[0], fresh);
	for (size_t i = 0; i < n; i++)
		ask_take(p, &call[first + i], &io[first + i], &v[i]);
	return 0;
}

int jemalloc_ask(struct process *p, const struct allocator *a, struct ctl_ask *v, size_t n,
		 struct ctl_fresh *fresh, struct diag *d)
{
	uint64_t fn = 0;
	int rc = jemalloc_symbol(a, "mallctl", &fn, d);

	if (!rc)
		rc = process_session(p, d);
	for (size_t i = 0; !rc && i < n; i += ASK_BATCH) {
		size_t some = n - i < ASK_BATCH ? n - i : ASK_BATCH;

		rc = ask_batch(p, fn, v + i, some, i ? NULL : fresh, d);
		if (p->session)
			session_scratch_reset(p->session);
	}
	return rc;
}

/* ---- what build it is */

int jemalloc_build(struct process *p, const struct allocator *a, struct ctl_build *out,
		   struct diag *d)
{
	struct ctl_ask *ask = calloc(CTL_FACTS + 2, sizeof(*ask));
	int rc;

	*out = (struct ctl_build){ 0 };
	if (!ask)
		return diag_internal(d, -ENOMEM, "mallctl");
	snprintf(out->version, sizeof(out->version), "%s", a->version);
	jemalloc_conf_name(a, out->conf, sizeof(out->conf));
	for (unsigned i = 0; i < CTL_FACTS; i++)
		ask[i].name = ctl_fact_name((enum ctl_fact)i);
	ask[CTL_FACTS].name = "version";
	ask[CTL_FACTS + 1].name = "arenas.narenas";
	for (unsigned i = 0; i < CTL_FACTS + 2; i++)
		ask[i].row = ctl_find(ask[i].name);
	rc = jemalloc_ask(p, a, ask, CTL_FACTS + 2, NULL, d);
	for (unsigned i = 0; !rc && i < CTL_FACTS; i++)
		if (!ask[i].rc)
			out->fact[i] = ask[i].value.b ? ANSWER_YES : ANSWER_NO;
	if (!rc && !*out->version && !ask[CTL_FACTS].rc)
		jemalloc_version_shorten(ask[CTL_FACTS].value.text, out->version,
					 sizeof(out->version));
	if (!rc && !ask[CTL_FACTS + 1].rc)
		out->narenas = ask[CTL_FACTS + 1].value.u;
	free(ask);
	return rc;
}

int jemalloc_refused(const struct allocator *a, const char *name, bool write, int rc,
		     struct diag *d)
{
	struct ctl_build b = { 0 };

	snprintf(b.version, sizeof(b.version), "%s", a->version);
	if (rc == ENOENT || rc == EPERM)
		jemalloc_conf_name(a, b.conf, sizeof(b.conf));
	return ctl_error(ctl_find(name), name, &b, write, rc, d);
}

int jemalloc_version(struct process *p, const struct allocator *a, unsigned *version,
		     struct diag *d)
{
	struct ctl_ask ask = { .name = "version", .row = ctl_find("version") };
	int rc;

	*version = ctl_version(a->version);
	if (*version)
		return 0;
	rc = jemalloc_ask(p, a, &ask, 1, NULL, d);
	if (!rc && !ask.rc)
		*version = ctl_version(ask.value.text);
	return rc;
}

/* ---- one name, also with a value */

/* The number for an index: `all` is one of jemalloc's own, before 5.0 the number of arenas. */
static int index_resolve(const struct ctl_path *path, unsigned i, const char *name, uint64_t have,
			 unsigned version, uint64_t *out, struct diag *d)
{
	const struct ctl_index *x = &path->index[i];

	*out = x->value;
	if (x->all && (i > 0 || !ctl_takes_all(path->row)))
		return diag_fail(d, -EINVAL, HM_USAGE, "mallctl-index",
				 "give a number; arenas.narenas says how many arenas there are",
				 "%.100s: this name is not for all of them at once", name);
	if (x->all)
		*out = version && version < 0x050000 ? have : JEMALLOC_ARENAS_ALL;
	return ctl_path_check(path, i, name, have, d);
}

/* Writes name with numbers for all of its indices, each of which is there. */
static int name_resolve(struct process *p, const struct allocator *a, const struct ctl_path *path,
			const char *name, char full[NAME_SIZE], struct diag *d)
{
	struct ctl_ask ask[CTL_INDICES] = { 0 };
	uint64_t index[CTL_INDICES] = { 0 };
	unsigned version = 0;
	int rc = path->n && path->index[0].all ? jemalloc_version(p, a, &version, d) : 0;

	for (unsigned i = 0; !rc && i < path->n; i++) {
		ask[i].name = ctl_range_name(path->index[i].range);
		ask[i].row = ask[i].name ? ctl_find(ask[i].name) : NULL;
		if (ask[i].row)
			rc = jemalloc_ask(p, a, &ask[i], 1, NULL, d);
		if (!rc)
			rc = index_resolve(path, i, name,
					   ask[i].row && !ask[i].rc ? ask[i].value.u : 0, version,
					   &index[i], d);
	}
	if (!rc && ctl_path_name(path, index, full, NAME_SIZE))
		rc = ctl_unknown(name, d);
	return rc;
}

enum { CTL_EPOCH, CTL_OLD, CTL_NEW, CTL_NOW, CTL_CALLS };

/* A mallctl as a batch: epoch where statistics are read, then the read, then the write, and a read
 * of what it has made of the value. */
struct batch {
	struct call call[CTL_CALLS];
	struct ctl_call io[CTL_CALLS];
	int at[CTL_CALLS]; /* index into call, -1: not part of it */
	size_t n;
};

static int batch_add(struct session *s, struct batch *b, int what, uint64_t fn, const char *name,
		     const struct ctl_value *value, size_t size)
{
	const struct ctl_io want = { .read = what == CTL_OLD || what == CTL_NOW,
				     .write = value != NULL,
				     .size = size };
	int rc = ctl_call_name(s, fn, name, &want, &b->call[b->n], &b->io[b->n]);

	if (!rc && value)
		rc = ctl_call_place(s, value, &b->io[b->n]);
	b->at[what] = (int)b->n++;
	return rc;
}

/* Names whose answer is of the last epoch. */
static bool needs_epoch(const struct ctl_name *row)
{
	return !strncmp(row->name, "stats.", 6) || !strcmp(row->name, "arena.<i>.initialized");
}

static int batch_fill(struct process *p, struct batch *b, uint64_t fn, const char *name,
		      const struct ctl_name *row, const struct ctl_value *value)
{
	size_t size = ctl_size(row->type);
	int rc = 0;

	*b = (struct batch){ .at = { -1, -1, -1, -1 } };
	if (needs_epoch(row)) {
		rc = epoch_prepare(p->session, fn, &b->call[0], &b->io[0]);
		b->at[CTL_EPOCH] = (int)b->n++;
	}
	if (!rc && row->access & CTL_READ)
		rc = batch_add(p->session, b, CTL_OLD, fn, name, NULL, size);
	if (!rc && (value || row->type == CTL_VOID))
		rc = batch_add(p->session, b, CTL_NEW, fn, name, value, size);
	if (!rc && value && row->access & CTL_READ)
		rc = batch_add(p->session, b, CTL_NOW, fn, name, NULL, size);
	return rc;
}

/* What mallctl returned, 0 if all is well. *read: it is the read that was refused. */
static int batch_code(const struct batch *b, bool write, bool *read)
{
	*read = false;
	if (b->at[CTL_NEW] >= 0 && (int)b->call[b->at[CTL_NEW]].ret)
		return (int)b->call[b->at[CTL_NEW]].ret;
	/* A name that is written by itself may have nothing to read yet. */
	if (b->at[CTL_OLD] < 0 || write)
		return 0;
	*read = true;
	return (int)b->call[b->at[CTL_OLD]].ret;
}

static int take(struct process *p, const struct batch *b, int what, const char *name,
		const struct ctl_name *row, struct ctl_value *out, struct diag *d)
{
	const struct ctl_call *io = &b->io[b->at[what]];
	const struct ctl_build none = { 0 };
	int rc;

	if ((int)b->call[b->at[what]].ret)
		return 0;
	rc = ctl_call_take(p, row->type, io, out);
	if (rc == -EPROTO)
		return ctl_error_size(row, name, &none, *io->old_len, d);
	if (rc)
		return diag_fail(d, rc, HM_CALL_FAILED, "mallctl-string",
				 "try again; `stats` prints it too",
				 "%.100s: the string that it points to cannot be read", name);
	return 0;
}

/* The sentence for a refusal; what the build says of itself is asked for where that matters. */
static int refused(struct process *p, const struct allocator *a, const struct ctl_name *row,
		   const char *name, bool write, int code, uint64_t got, struct diag *d)
{
	struct ctl_build b = { 0 };
	int rc;

	snprintf(b.version, sizeof(b.version), "%s", a->version);
	if (code == EPERM)
		jemalloc_conf_name(a, b.conf, sizeof(b.conf));
	if (code == ENOENT) {
		rc = jemalloc_build(p, a, &b, d);
		if (rc)
			return rc;
	}
	if (code == EINVAL && got && got != ctl_size(row->type))
		return ctl_error_size(row, name, &b, got, d);
	return ctl_error(row, name, &b, write, code, d);
}

static int run(struct process *p, const struct allocator *a, uint64_t fn, const char *name,
	       const struct ctl_name *row, const struct ctl_value *value, struct ctl_value *old,
	       struct ctl_value *now, struct ctl_fresh *fresh, struct diag *d)
{
	uint64_t got = 0;
	struct batch b;
	bool read;
	int code, rc = batch_fill(p, &b, fn, name, row, value);

	if (rc)
		return diag_internal(d, rc, "mallctl");
	rc = process_calls(p, b.call, b.n, d);
	if (rc)
		return rc;
	if (fresh && b.at[CTL_EPOCH] >= 0)
		epoch_take(&b.call[0], &b.io[0], fresh);
	code = batch_code(&b, value != NULL, &read);
	if (code && read)
		got = *b.io[b.at[CTL_OLD]].old_len;
	if (!code && old && b.at[CTL_OLD] >= 0)
		rc = take(p, &b, CTL_OLD, name, row, old, d);
	if (!code && !rc && now && b.at[CTL_NOW] >= 0)
		rc = take(p, &b, CTL_NOW, name, row, now, d);
	session_scratch_reset(p->session);
	return code ? refused(p, a, row, name, !read && value, code, got, d) : rc;
}

/* Whether a name says false; one that this jemalloc does not have says nothing. */
static int says_false(struct process *p, const struct allocator *a, const char *name, bool *no,
		      struct diag *d)
{
	struct ctl_ask ask = { .name = name, .row = ctl_find(name) };
	struct ctl_fresh fresh;
	int rc = jemalloc_ask(p, a, &ask, 1, &fresh, d);

	*no = !rc && !ask.rc && !ask.value.b;
	return rc;
}

/*
 * What jemalloc takes and does nothing for: a purge or decay of an arena that is not there, and
 * before 5.3 a switch of the sampling where it was not enabled at the start. A success would say
 * that something was done. initialized exists since 5.0.
 */
static int check_effect(struct process *p, const struct allocator *a, const struct ctl_name *row,
			const char *full, bool write, struct diag *d)
{
	static const char prefix[] = "arena.";
	bool arena = row->type == CTL_VOID && strncmp(full, prefix, sizeof(prefix) - 1) == 0;
	unsigned long index = arena ? strtoul(full + sizeof(prefix) - 1, NULL, 10) : 0;
	bool prof = (write || row->type == CTL_VOID) && strncmp(row->condition, "prof", 4) == 0;
	char name[NAME_SIZE] = "opt.prof";
	bool no;
	int rc;

	if ((!arena || index == JEMALLOC_ARENAS_ALL) && !prof)
		return 0;
	if (arena)
		snprintf(name, sizeof(name), "arena.%lu.initialized", index);
	rc = says_false(p, a, name, &no, d);
	if (rc || !no)
		return rc;
	return refused(p, a, row, full, write, arena ? EFAULT : ENOENT, 0, d);
}

int jemalloc_ctl_at(struct process *p, const struct allocator *a, const char *name,
		    const struct ctl_name *row, const struct ctl_value *value,
		    struct ctl_value *old, struct ctl_value *now, struct ctl_fresh *fresh,
		    bool agreed, struct diag *d)
{
	char full[NAME_SIZE];
	struct ctl_path path;
	uint64_t fn = 0;
	int rc;

	if (old)
		*old = (struct ctl_value){ .type = CTL_VOID };
	if (now)
		*now = (struct ctl_value){ .type = CTL_VOID };
	if (fresh)
		*fresh = (struct ctl_fresh){ 0 };
	if (!row)
		return ctl_unknown(name, d);
	rc = ctl_check(row, name, value != NULL, d);
	if (!rc && value)
		rc = ctl_check_value(row, value, d);
	if (rc && agreed && d->exit == HM_UNSAFE && !row->forbidden) {
		diag_clear(d);
		rc = 0;
	}
	if (!rc && ctl_path_parse(row, name, &path))
		rc = ctl_unknown(name, d);
	if (!rc)
		rc = jemalloc_symbol(a, "mallctl", &fn, d);
	if (!rc)
		rc = process_session(p, d);
	if (!rc)
		rc = name_resolve(p, a, &path, name, full, d);
	if (!rc)
		rc = check_effect(p, a, row, full, value != NULL, d);
	if (!rc)
		rc = run(p, a, fn, full, row, value, old, now, fresh, d);
	if (rc && p->session)
		session_scratch_reset(p->session);
	return rc;
}

int jemalloc_ctl(struct process *p, const struct allocator *a, const char *name,
		 const struct ctl_name *row, const struct ctl_value *value, struct ctl_value *old,
		 struct diag *d)
{
	return jemalloc_ctl_at(p, a, name, row, value, old, NULL, NULL, false, d);
}
