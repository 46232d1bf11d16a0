// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SESSION_H
#define HM_SESSION_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"
#include "maps.h"
#include "modules.h"
#include "target.h"

/*
 * A session makes calls in the target. With many threads it borrows one for a moment to start a
 * proxy thread of its own there; with a single thread each batch of calls runs on that thread while
 * it is held. See session.c.
 */
enum via { VIA_AUTO, VIA_PROXY, VIA_DIRECT };

struct session_opts {
	enum via via;
	pid_t thread;			     /* borrow this one, 0: choose */
	uint64_t deadline_ns;		     /* to find a safe point; 0: 2 s */
	uint64_t timeout_ns;		     /* for one batch of calls; 0: 30 s */
	const volatile sig_atomic_t *cancel; /* set by the caller's SIGINT handler; may be NULL */
};

/* Things a direct call needs to be safe about: the kinds of code (enum code_kind) not to be under
 * it. */
struct call {
	uint64_t fn;	 /* address in the target */
	uint64_t arg[8]; /* System V AMD64: six in registers, then two on the stack */
	uint64_t ret;	 /* out: rax */
	int err; /* out: errno of the calling thread after the call (0 if the call left it alone) */
	uint64_t ns; /* out: duration inside the target, CLOCK_MONOTONIC */
	/*
	 * For a direct call only: the 8-byte word at swap_addr is replaced by swap_value while the
	 * call runs and put back by the payload itself. 0: none. A proxy session refuses it
	 * (-EINVAL): other threads would see it.
	 */
	uint64_t swap_addr, swap_value;
	/* The int there is put back by the payload itself when the call has returned. 0: none. */
	uint64_t keep_addr;
	bool stdio; /* the call takes stdio locks: a thread inside stdio must not be borrowed for it
		     */
};

struct session;

/*
 * Attaches. mods must stay valid while the session lives. cancel, where given, ends waits early
 * (-ECANCELED). Nothing of ours is in the target after an error, except when d says exit 8.
 */
HM_MUST_CHECK int session_open(const struct target *t, const struct modules *mods,
			       const struct session_opts *o, struct session **out, struct diag *d);
/*
 * What would be refused for lack of symbols or of room, told from outside: nothing is held. Fills d
 * as session_open would.
 */
HM_MUST_CHECK int session_foresee(const struct target *t, const struct modules *mods,
				  const struct maps *maps, const struct session_opts *o,
				  struct diag *d);
/*
 * What opening a session would find, up to the point where the payload would run: a thread is held
 * at a safe point, its seccomp filter is asked, our memory is mapped and unmapped, and the thread
 * is given back. Errors are those of session_open. *held is what it cost.
 */
struct held;
HM_MUST_CHECK int session_rehearse(const struct target *t, const struct modules *mods,
				   const struct session_opts *o, struct held *held, struct diag *d);
/*
 * Runs n calls (at most SESSION_MAX_CALLS) one after another in the target. 0 when all have
 * returned, whatever they returned. Errors: exit 6 no safe point (nothing ran), 8 still running
 * when the time was up or cancel was set (the session is then only good for session_close), 9 the
 * target died.
 */
#define SESSION_MAX_CALLS 64
HM_MUST_CHECK int session_call(struct session *s, struct call *v, size_t n, struct diag *d);

/*
 * The same for a batch in which a call creates a file and writes it: given the name MEMFILE_PATH
 * (memfile.h), which stands at path in scratch, it gets a memory file in its place. *fd is that
 * file, for the caller to read and close; -1 where none was asked for, or on an error. Exit 1 where
 * the call was made and the file could not be had.
 */
HM_MUST_CHECK int session_call_file(struct session *s, struct call *v, size_t n, const char *path,
				    int *fd, struct diag *d);
/*
 * Has the proxy make this call by itself should we be gone without a farewell, as by SIGKILL. It
 * may point to len bytes of data (at most SESSION_PARTING_DATA), which are kept at
 * session_parting_addr. c NULL takes it back. -EOPNOTSUPP where no thread of ours waits between two
 * calls: in a direct session, and under a seccomp filter (d is left alone).
 */
#define SESSION_PARTING_DATA 64
HM_MUST_CHECK int session_parting(struct session *s, const struct call *c, const void *data,
				  size_t len, struct diag *d);
uint64_t session_parting_addr(const struct session *s);
/* In place of session_opts.cancel from now on: NULL for what has to be done also after a Ctrl-C. */
void session_set_cancel(struct session *s, const volatile sig_atomic_t *cancel);

/*
 * Scratch memory that the target's calls can point to: fill the local copy before session_call,
 * read results from it after. session_addr gives the address of a local pointer in the target.
 * Zeroed by session_scratch_reset.
 */
#define SESSION_SCRATCH ((size_t)64 * 1024)
void *session_scratch(struct session *s);
uint64_t session_addr(struct session *s, const void *local);
void *session_alloc(struct session *s, size_t len); /* 16-aligned piece of scratch, NULL if full */
void session_scratch_reset(struct session *s);

/*
 * Captured output. session_sink is a function void f(void *ignored, const char *text) in the target
 * that appends text, session_text_sink one that takes them the other way round; session_outbuf is
 * memory for a FILE's buffer there. session_output collects, since the last call of it, what
 * reached the sink, then what the proxy wrote to its descriptors 0 to 2; used bytes of outbuf are
 * told by the caller. *text is malloc'ed, NUL-terminated, the caller frees it. *cut says that the
 * sink was full.
 */
uint64_t session_sink(struct session *s);
uint64_t session_text_sink(struct session *s);
uint64_t session_outbuf(struct session *s, size_t *len);
HM_MUST_CHECK int session_output(struct session *s, size_t outbuf_used, char **text, size_t *len,
				 bool *cut, struct diag *d);

/* The descriptor that captured output of a proxy goes to (1), or -1 in a direct session. */
int session_outfd(const struct session *s);
bool session_is_proxy(const struct session *s);
/* The thread of ours that runs in the target now, 0 if there is none. */
pid_t session_thread(const struct session *s);
const char *session_via(const struct session *s); /* "proxy" or "direct" */

/* How long application threads were held so far. */
struct held {
	unsigned threads; /* how many holds there were */
	uint64_t max_ns, last_ns, total_ns;
	/* Waits whose timeout has begun anew; of the last one the thread and the call (static). */
	unsigned anew;
	pid_t anew_tid;
	const char *anew_call;
};
void session_held(const struct session *s, struct held *out);

/* While parked the proxy waits in poll(2), untraced; a parked session costs the target nothing.
 * Calls unpark. */
HM_MUST_CHECK int session_park(struct session *s, struct diag *d);

/*
 * Ends the proxy, removes everything from the target, verifies it. 0, or -EBUSY with exit 8 in d
 * when a call still runs there. Frees s always. warn (may be NULL) gets one line if the target is
 * not as before.
 */
int session_close(struct session *s, struct diag *d, char *warn, size_t warn_size);

/* Regions that a killed run has left in the target (by name, address check or content); for
 * `check`. */
struct leftovers {
	unsigned regions; /* nobody uses them: the next session removes them */
	unsigned busy;	  /* a proxy of a living or killed run still runs there */
	pid_t busy_tid;
};
HM_MUST_CHECK int session_leftovers(const struct target *t, const struct maps *maps,
				    struct leftovers *out);
#endif
