// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_mib.h"

#include <errno.h>
#include <string.h>

#include "jemalloc_call.h"

/* int mallctlnametomib(const char *name, size_t *mibp, size_t *miblenp) */
static int name_prepare(struct session *s, uint64_t fn, const char *name, const struct ctl_mib *v,
			struct call *c, uint64_t *at[2])
{
	const struct ctl_io nothing = { 0 };
	struct ctl_call io;
	int rc = ctl_call_name(s, fn, name, &nothing, c, &io);

	at[0] = session_alloc(s, sizeof(v->part));
	at[1] = session_alloc(s, sizeof(*at[1]));
	if (rc || !at[0] || !at[1])
		return -ENOMEM;
	*at[1] = v->n;
	c->arg[1] = session_addr(s, at[0]);
	c->arg[2] = session_addr(s, at[1]);
	return 0;
}

int jemalloc_mibs(struct process *p, const struct allocator *a, char (*name)[CTL_NAME_SIZE],
		  struct ctl_mib *v, size_t n, struct diag *d)
{
	struct call call[SWEEP_BATCH];
	uint64_t *at[SWEEP_BATCH][2]; /* the parts, and how many there are */
	uint64_t fn = 0;
	int rc = jemalloc_symbol(a, "mallctlnametomib", &fn, d);

	if (!rc)
		rc = process_session(p, d);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < n; i++)
		rc = name_prepare(p->session, fn, name[i], &v[i], &call[i], at[i]);
	if (rc) {
		session_scratch_reset(p->session);
		return diag_internal(d, rc, "mallctl");
	}
	rc = process_calls(p, call, n, d);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++) {
		v[i].rc = (int)call[i].ret;
		if (!v[i].rc && *at[i][1] != v[i].n)
			v[i].rc = EPROTO;
		memcpy(v[i].part, at[i][0], sizeof(v[i].part));
	}
	session_scratch_reset(p->session);
	return 0;
}

static int mib_prepare(struct session *s, uint64_t fn, const struct mib_ask *v, struct call *c,
		       struct ctl_call *io)
{
	const struct ctl_io want = { .read = v->read,
				     .write = v->value != NULL,
				     .size = ctl_size(v->type) };
	int rc = ctl_call_mib(s, fn, v->mib.part, v->mib.n, &want, c, io);

	return !rc && v->value ? ctl_call_place(s, v->value, io) : rc;
}

int jemalloc_mib_ask(struct process *p, const struct allocator *a, struct mib_ask *v, size_t n,
		     struct diag *d)
{
	struct call call[SWEEP_BATCH];
	struct ctl_call io[SWEEP_BATCH];
	uint64_t fn = 0;
	int rc = jemalloc_symbol(a, "mallctlbymib", &fn, d);

	if (!rc)
		rc = process_session(p, d);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < n; i++)
		rc = mib_prepare(p->session, fn, &v[i], &call[i], &io[i]);
	if (rc) {
		session_scratch_reset(p->session);
		return diag_internal(d, rc, "mallctl");
	}
	rc = process_calls(p, call, n, d);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++) {
		v[i].rc = (int)call[i].ret;
		if (!v[i].rc && v[i].read)
			v[i].rc = -ctl_call_take(p, v[i].type, &io[i], &v[i].old);
	}
	session_scratch_reset(p->session);
	return 0;
}
