// SPDX-License-Identifier: GPL-3.0-or-later
/* Calls that write a file, and what is done when we are gone. */
#include "session_parts.h"

#include <errno.h>
#include <string.h>

#include "mem.h"

_Static_assert(SESSION_PARTING_DATA == HM_PARTING_DATA, "abi");

static int no_file(int err, struct diag *d)
{
	return diag_fail(d, err, HM_CALL_FAILED, "no-memory-file",
			 "look at its limit of open files (/proc/PID/limits), and at whether a "
			 "security module forbids it",
			 "what the call writes could not be kept in a memory file of the target: "
			 "%s",
			 strerror(-err));
}

int session_call_file(struct session *s, struct call *v, size_t n, const char *path, int *fd,
		      struct diag *d)
{
	struct memfile m;
	int rc;

	*fd = -1;
	memfile_init(&m, session_addr(s, path));
	s->file = &m;
	rc = session_call(s, v, n, d);
	s->file = NULL;
	s->b.memfile = NULL;
	s->proxy.memfile = NULL;
	if (rc == 0 && m.err)
		rc = no_file(m.err, d);
	if (rc)
		memfile_close(&m);
	*fd = m.fd;
	return rc;
}

uint64_t session_parting_addr(const struct session *s)
{
	return s->r.block + offsetof(struct hm_block, parting_data);
}

static int write_parting(const struct session *s, const struct hm_slot *slot)
{
	return mem_write(s->t->pid, s->r.block + offsetof(struct hm_block, parting), slot,
			 sizeof(*slot));
}

int session_parting(struct session *s, const struct call *c, const void *data, size_t len,
		    struct diag *d)
{
	struct hm_slot slot = { 0 };
	int rc = 0;

	if (len > SESSION_PARTING_DATA)
		return diag_internal(d, -EINVAL, "the proxy's last call");
	if (!s->proxy_on || s->b.options)
		return -EOPNOTSUPP;
	/* no call in between, and what it points to is there first */
	if (c)
		rc = write_parting(s, &slot);
	if (rc == 0 && len)
		rc = mem_write(s->t->pid, session_parting_addr(s), data, len);
	if (c) {
		slot.fn = c->fn;
		memcpy(slot.arg, c->arg, sizeof(slot.arg));
	}
	if (rc == 0)
		rc = write_parting(s, &slot);
	return rc ? session_lost(s, rc, "telling the proxy its last call", d) : 0;
}

void session_set_cancel(struct session *s, const volatile sig_atomic_t *cancel)
{
	s->o.cancel = cancel;
	s->proxy.cancel = cancel;
}
