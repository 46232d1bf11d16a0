// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_prof.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "environ.h"
#include "jemalloc_call.h"
#include "jemalloc_conf.h"
#include "jemalloc_ctl.h"

/* A new value (NULL: none is written) of size bytes; where read is set the old one is read first.
 */
static int prepare(struct session *s, uint64_t fn, const char *name, bool read, const void *new,
		   size_t size, struct call *c, struct ctl_call *io)
{
	const struct ctl_io how = { .read = read, .write = new != NULL, .size = size };
	int rc = ctl_call_name(s, fn, name, &how, c, io);

	if (rc == 0 && new)
		memcpy(io->new, new, size);
	return rc;
}

static void reset_scratch(struct process *p)
{
	if (p->session)
		session_scratch_reset(p->session);
}

static int begin(struct process *p, const struct allocator *a, uint64_t *fn, struct diag *d)
{
	int rc = jemalloc_symbol(a, "mallctl", fn, d);

	return rc ? rc : process_session(p, d);
}

static uint64_t value_of(const struct ctl_call *io, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, io->old, size);
	return v;
}

int jemalloc_prof_state(struct process *p, const struct allocator *a, struct prof_state *out,
			struct diag *d)
{
	struct ctl_call io[PROF_NAMES];
	struct call c[PROF_NAMES];
	uint64_t fn = 0;
	size_t size;
	int rc = begin(p, a, &fn, d);

	memset(out, 0, sizeof(*out));
	if (rc)
		return rc;
	for (unsigned i = 0; i < PROF_NAMES && rc == 0; i++) {
		const char *name = prof_name_text((enum prof_name)i, &size);

		rc = prepare(p->session, fn, name, true, NULL, size, &c[i], &io[i]);
	}
	if (rc)
		diag_internal(d, rc, "mallctl");
	else
		rc = process_calls(p, c, PROF_NAMES, d);
	for (unsigned i = 0; i < PROF_NAMES && rc == 0; i++) {
		(void)prof_name_text((enum prof_name)i, &size);
		/* jemalloc refuses a size that is not that of the type */
		out->known[i] = (int)c[i].ret == 0 && *io[i].old_len == size;
		if (out->known[i])
			out->value[i] = value_of(&io[i], size);
	}
	reset_scratch(p);
	if (rc == 0 && (int)c[PROF_COMPILED].ret)
		rc = jemalloc_refused(a, "config.prof", false, (int)c[PROF_COMPILED].ret, d);
	return rc;
}

/* What the variable holds now may be secret only as far as it is not jemalloc's. */
const char *jemalloc_prof_line(const struct process *p, const struct allocator *a, char *buf,
			       size_t size)
{
	struct environ e;
	char name[40];

	jemalloc_conf_name(a, name, sizeof(name));
	if (environ_read(&p->t, &e))
		return prof_conf_line(name, NULL, buf, size);
	prof_conf_line(name, environ_get(&e, name), buf, size);
	environ_free(&e);
	return buf;
}

int jemalloc_prof_require(struct process *p, const struct allocator *a, struct prof_state *out,
			  struct diag *d)
{
	char line[300];
	int rc = jemalloc_prof_state(p, a, out, d);

	if (rc)
		return rc;
	return prof_check(out, (int)p->t.pid, jemalloc_prof_line(p, a, line, sizeof(line)), d);
}

/* One call that writes, and reads what stood there where it can be read. */
static int write_one(struct process *p, const struct allocator *a, const char *name,
		     const void *new, size_t size, bool read, struct ctl_call *io, struct diag *d)
{
	uint64_t fn = 0;
	struct call c;
	int rc = begin(p, a, &fn, d);

	if (rc)
		return rc;
	rc = prepare(p->session, fn, name, read, new, size, &c, io);
	if (rc)
		return diag_internal(d, rc, "mallctl");
	rc = process_calls(p, &c, 1, d);
	if (rc == 0 && (int)c.ret)
		rc = jemalloc_refused(a, name, true, (int)c.ret, d);
	return rc;
}

int jemalloc_prof_switch(struct process *p, const struct allocator *a, bool on, bool *was,
			 struct diag *d)
{
	struct ctl_call io;
	int rc = write_one(p, a, "prof.active", &on, 1, true, &io, d);

	if (rc == 0)
		*was = value_of(&io, 1);
	reset_scratch(p);
	return rc;
}

int jemalloc_prof_off_at_end(struct process *p, const struct allocator *a, bool off, struct diag *d)
{
	/* mallctl("prof.active", NULL, NULL, &off, sizeof(off)) */
	const struct {
		char name[16];
		bool off;
	} data = { "prof.active", false };
	struct call c = { .fn = 0 };
	uint64_t at;
	int rc = begin(p, a, &c.fn, d);

	if (rc)
		return rc;
	if (!off)
		return session_parting(p->session, NULL, NULL, 0, d);
	at = session_parting_addr(p->session);
	c.arg[0] = at + offsetof(__typeof__(data), name);
	c.arg[3] = at + offsetof(__typeof__(data), off);
	c.arg[4] = sizeof(data.off);
	return session_parting(p->session, &c, &data, sizeof(data), d);
}

int jemalloc_prof_reset(struct process *p, const struct allocator *a, uint64_t lg, struct diag *d)
{
	struct ctl_call io;
	int rc = write_one(p, a, "prof.reset", &lg, sizeof(lg), false, &io, d);

	reset_scratch(p);
	return rc;
}
