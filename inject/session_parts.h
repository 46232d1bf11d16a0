// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SESSION_PARTS_H
#define HM_SESSION_PARTS_H
/* Shared by the session*.c files and by nobody else. All functions return 0 or a negative errno and
 * fill d. */
#include "session.h"

#include <dirent.h>

#include "anchors.h"
#include "borrow.h"
#include "memfile.h"
#include "proxy.h"

struct session {
	const struct target *t;
	const struct modules *mods;
	struct session_opts o;
	struct anchors a;
	struct code_map *code;
	struct unwinder *unwinder;
	struct maps maps;
	bool have_maps;
	struct borrow b;
	struct region r;
	enum hm_mode mode;
	struct proxy proxy;
	bool proxy_on;
	struct memfile *file; /* what the batch writes to; NULL: to none */
	uint64_t abort_msg;   /* see last_words.h; 0 unknown */
	bool running;	      /* a direct call was left behind */
	unsigned char *text;
	size_t text_len;
	struct hm_block block; /* as it is to be written */
	struct hm_range reap[HM_MAX_REAP];
	size_t n_reap;
	unsigned char *scratch;
	size_t used;	/* of scratch */
	char *captured; /* direct: what the last batch wrote */
	size_t captured_len;
	uint64_t captured_lost;
	sigset_t old_mask;
};

/* Reads the maps again. */
HM_MUST_CHECK int session_maps(struct session *s, struct diag *d);
HM_MUST_CHECK int session_prepare(struct session *s, struct diag *d);
/* Another place for the region: somebody has taken the one that was chosen. Only before anything
 * points to it. */
HM_MUST_CHECK int session_place(struct session *s, struct diag *d);
/* A thread is held at a safe point after 0. forbid: enum code_kind bits that must not be on its
 * stack. */
HM_MUST_CHECK int session_hold(struct session *s, unsigned forbid, struct diag *d);
/* Holds a thread, maps the region, starts the boot code. On success the thread is in it. */
HM_MUST_CHECK int session_enter(struct session *s, unsigned forbid, struct diag *d);
/* Asks the held thread's seccomp filter (exit 6), then maps the region. Nothing stays after an
 * error. */
HM_MUST_CHECK int session_map(struct session *s, struct diag *d);
/* Why there was no room for our memory, with the errno of the call that said so. Fills d. */
int session_no_room(const struct session *s, int err, struct diag *d);
/* The held thread unmaps the region. */
HM_MUST_CHECK int session_unmap(struct session *s);
/* After an error with a thread held: gives it back and returns what to report; what is NULL where d
 * is filled. */
HM_MUST_CHECK int session_give_up(struct session *s, int rc, const char *what, struct diag *d);
/* what, where borrow_return itself has failed */
#define RETURNING "giving the borrowed thread back"
/* The boot code has not ended: the thread finishes it, and what it holds there is let go of. */
HM_MUST_CHECK int session_left_running(struct session *s, int rc, struct diag *d);
/* -ECANCELED where the operator wants no more. */
HM_MUST_CHECK int session_interrupted(const struct session *s, struct diag *d);
/* The boot code ended in a signal: the thread is taken out of it. */
HM_MUST_CHECK int session_fault(struct session *s, int sig, struct diag *d);
/* Our memory in the target cannot be reached: the target has ended, or rc is an internal error. */
int session_lost(struct session *s, int rc, const char *what, struct diag *d);
int session_died(const struct session *s, struct diag *d);
HM_MUST_CHECK int session_open_proxy(struct session *s, struct diag *d);
HM_MUST_CHECK int session_call_proxy(struct session *s, struct call *v, size_t n, struct diag *d);
HM_MUST_CHECK int session_call_direct(struct session *s, struct call *v, size_t n, struct diag *d);
/* What seccomp_check has said, in d. direct_too: so does it for a direct call. */
int session_filter_refuses(int rc, const struct seccomp_call *c, bool direct_too, struct diag *d);
/* Reads the results of n calls and the scratch memory back. */
HM_MUST_CHECK int session_results(struct session *s, struct call *v, size_t n, struct diag *d);
/* The target's descriptors as a directory; NULL if it cannot be read. The caller closes it. */
DIR *session_fd_dir(const struct target *t);
/* Writes one line if the target is not as before; rc is what ending the proxy returned. */
void session_verify(struct session *s, int rc, char *warn, size_t size);
#endif
