// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SIGNALS_H
#define HM_SIGNALS_H
#include <signal.h>
#include <stdbool.h>

#include "../inject/diag.h"

/*
 * Ctrl-C ends a command, SIGTERM and SIGHUP end the program; both only set flags, because whatever
 * was begun in the target has to be undone first. SIGCHLD gets its default action back (an ignored
 * one, inherited, makes the kernel reap behind waitpid(2)); SIGPIPE is ignored, writes say EPIPE.
 * Ctrl-Z is kept for a moment at which nobody is held.
 */
HM_MUST_CHECK int signals_setup(struct diag *d);

/* Set from Ctrl-C, SIGTERM or SIGHUP on until signals_rearm: what session_opts.cancel points to. */
const volatile sig_atomic_t *signals_cancel(void);
/* Forgets a Ctrl-C. A SIGTERM or SIGHUP stays. */
void signals_rearm(void);
/* SIGTERM or SIGHUP has come: leave. */
bool signals_leaving(void);
/* True once after each: the window changed; Ctrl-Z was pressed. */
bool signals_take_winch(void);
bool signals_take_stop(void);
/* Stops this process as the default action of SIGTSTP would; returns when it is continued. */
void signals_stop_self(void);
/*
 * Blocks what the handlers take and stores the mask before it in *before, for a wait in ppoll(2)
 * that misses none; signals_unblock ends it.
 */
void signals_block(sigset_t *before);
void signals_unblock(const sigset_t *before);
#endif
