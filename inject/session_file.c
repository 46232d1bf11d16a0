// SPDX-License-Identifier: GPL-3.0-or-later
/* Calls that write a file, and what is done when we are gone. */
#include "session_parts.h"

#include <errno.h>
#include <string.h>

#include "mem.h"

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

int session_parting(struct session *s, const struct call *c, struct diag *d)
{
	struct hm_slot slot = { 0 };
	int rc = 0;

	if (!s->proxy_on || s->b.options)
		return -EOPNOTSUPP;
	if (c) {
		slot.fn = c->fn;
		memcpy(slot.arg, c->arg, sizeof(slot.arg));
		/* what it points to has to be there first */
		rc = mem_write(s->t->pid, s->r.scratch, s->scratch, s->used);
	}
	if (rc == 0)
		rc = mem_write(s->t->pid, s->r.block + offsetof(struct hm_block, parting), &slot,
			       sizeof(slot));
	return rc ? session_lost(s, rc, "telling the proxy its last call", d) : 0;
}

void session_set_cancel(struct session *s, const volatile sig_atomic_t *cancel)
{
	s->o.cancel = cancel;
	s->proxy.cancel = cancel;
}
