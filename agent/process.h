// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROCESS_H
#define HM_PROCESS_H
#include "../inject/maps.h"
#include "../inject/modules.h"
#include "../inject/preflight.h"
#include "../inject/session.h"
#include "../inject/target.h"
#include "allocator.h"

struct glibc_picture;

/* A process under examination: what was read of it, and the session once a command needs one. */
struct process {
	struct target t;
	struct preflight pre;
	struct maps maps;
	struct modules mods;
	uint64_t layout; /* of the maps that mods were read by */
	struct allocators allocs;
	struct session *session; /* NULL until process_session */
	struct session_opts opts;
	struct held held; /* of sessions that are closed already */
	/* of its heap, while a command needs it for more than one thing (glibc_picture.h); or NULL
	 */
	struct glibc_picture *picture;
	char only[160]; /* the allocators that commands are for (allocator_choice.h); "": all */
	bool force;	/* calls are made whatever the heap looks like */
	char heap_note[160]; /* of the last look at the heap: what was left out, or "" */
};

/* Reads everything that is read without a call. On error nothing stays open and *out is NULL. */
HM_MUST_CHECK int process_open(pid_t pid, const struct session_opts *o, struct process **out,
			       struct diag *d);
/* Ends the session if there is one. Returns session_close's result; frees p always. warn: see
 * session_close. */
int process_close(struct process *p, struct diag *d, char *warn, size_t warn_size);
/*
 * Opens the session unless it is open; what preflight has found against it is the error, or a heap
 * that is damaged (exit 6): a thread is created there, and that allocates.
 */
HM_MUST_CHECK int process_session(struct process *p, struct diag *d);
/* The same before a call that walks the heap: also in an open session the heap is looked at. */
HM_MUST_CHECK int process_ready(struct process *p, struct diag *d);
/* Ends the session, if there is one, and keeps the process. warn gets "" or what session_close
 * says.
 */
int process_end_session(struct process *p, struct diag *d, char *warn, size_t warn_size);
/* Forgets a session that a failed call has made unusable (exit 8, 9). */
void process_drop_session(struct process *p);
/*
 * Looks again, before each command of a long session: preflight and maps, and modules where the
 * process has loaded a library or executed another program since. The session is ended then.
 */
HM_MUST_CHECK int process_refresh(struct process *p, struct diag *d);
/* Has it executed another program, or loaded or dropped a library, since it was last looked at? */
bool process_changed(const struct process *p);
/* The allocator of that name that is in use, or NULL; of several the one that p->only names, else
 * as allocators_get. */
const struct allocator *process_allocator(const struct process *p, const char *name);
/*
 * Convenience over session_call for one call: opens the session, resolves nothing. ret and ns may
 * be NULL.
 */
HM_MUST_CHECK int process_call(struct process *p, uint64_t fn, const uint64_t arg[6], uint64_t *ret,
			       uint64_t *ns, struct diag *d);
/*
 * Runs calls that were prepared in the session's scratch (process_session first). Where the session
 * is lost by it (exit 3, 8, 9) it is dropped: scratch is gone then.
 */
HM_MUST_CHECK int process_calls(struct process *p, struct call *v, size_t n, struct diag *d);
/* The same by session_call_file: one of the calls writes a file. */
HM_MUST_CHECK int process_calls_file(struct process *p, struct call *v, size_t n, const char *path,
				     int *fd, struct diag *d);
/*
 * Up to where code of ours would run: a thread is held at a safe point, its seccomp filter is
 * asked, our memory is mapped and unmapped, and the thread is given back. 0: a call can be made, as
 * far as that can be known before it is; nothing is done where a session is open. Errors are those
 * of a call.
 */
HM_MUST_CHECK int process_rehearse(struct process *p, struct diag *d);
/* How long threads were held so far, in this session and those before it. */
void process_held(const struct process *p, struct held *out);
#endif
