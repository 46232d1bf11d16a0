// SPDX-License-Identifier: GPL-3.0-or-later
/* Sessions in a single-threaded target: each batch of calls runs on its thread, while that is held.
 */
#include "session_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "mem.h"

/* The out buffer is zero where nothing was written and holds text: it ends at the first NUL. */
static int capture(struct session *s)
{
	size_t at = 0;

	free(s->captured);
	s->captured = malloc(s->r.out_len + 1);
	if (!s->captured)
		return -ENOMEM;
	while (at < s->r.out_len) {
		size_t len = s->r.out_len - at < 65536 ? s->r.out_len - at : 65536;
		int rc = mem_read(s->t->pid, s->r.out + at, s->captured + at, len);
		char *end;

		if (rc)
			return rc;
		end = memchr(s->captured + at, '\0', len);
		if (end) {
			at = (size_t)(end - s->captured);
			break;
		}
		at += len;
	}
	s->captured_len = at;
	return mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, out_lost),
			&s->captured_lost, sizeof(s->captured_lost));
}

int session_call_direct(struct session *s, struct call *v, size_t n, struct diag *d)
{
	unsigned forbid = CODE_ALLOC | CODE_LOADER | CODE_THREADS;
	pid_t clone = 0;
	int sig = 0;
	int rc, undo;

	for (size_t i = 0; i < n; i++)
		forbid |= v[i].stdio ? CODE_STDIO : 0U;
	s->block.n_calls = (uint32_t)n;
	s->b.memfile = s->file;
	rc = session_enter(s, forbid, d);
	if (rc)
		return rc;
	rc = borrow_finish(&s->b, &s->r, s->block.marker, clock_now() + s->o.timeout_ns,
			   s->o.cancel, &clone, &sig);
	if (rc == -ETIMEDOUT || rc == -ECANCELED)
		return session_left_running(s, rc, d);
	if (rc == -EFAULT)
		return session_fault(s, sig, d);
	if (rc)
		return session_give_up(s, rc, "waiting for the call", d);
	rc = capture(s);
	if (rc == 0)
		rc = session_results(s, v, n, d);
	undo = session_unmap(s);
	if (rc || undo)
		return session_give_up(s, rc ? rc : undo, "reading the results", d);
	s->block.n_reap = 0;
	rc = borrow_return(&s->b);
	return rc ? session_give_up(s, rc, RETURNING, d) : 0;
}
