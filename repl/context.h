// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CONTEXT_H
#define HM_CONTEXT_H
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "../agent/after_trim.h"
#include "audit.h"
#include "grammar.h"
#include "settings.h"
#include "sink.h"

struct metrics;
struct process;
struct reply;
struct selector;
struct snapshot;
struct written;

/* Where a command stands, for messages; name NULL: on the command line. */
struct origin {
	const char *name;
	unsigned line; /* 0: none */
};

#define CONTEXT_ARENAS 256

/* What commands run in: one target (or none), the settings, the sink. */
struct context {
	struct settings base;	     /* of the whole run; `set` changes these */
	struct settings set;	     /* of the command that runs: base and its own options */
	const struct settings *over; /* in place of base: options behind `source`; NULL: none */
	struct sink *sink;
	struct audit *audit; /* NULL: none */
	pid_t pid;	     /* 0: no target */
	const char *name;    /* it was given by this name (-n), alone; NULL: otherwise */
	const struct selector *selector; /* for a command that finds its processes itself, */
	size_t selectors;		 /* so many; 0: it is one of those in pid */
	struct metrics *metrics;	 /* where they are gathered, of several; NULL: of one */
	struct written *written;	 /* files, for all targets of the run; NULL: none */
	size_t targets;			 /* that the commands are run on, one after another */
	struct process *process;	 /* NULL until a command needs it */
	const struct snapshot *loaded;	 /* in place of a process; NULL: none */
	char comm[64];			 /* of the process, once it was open */
	struct origin origin;
	struct grammar_vars vars;
	bool interactive; /* a person types the commands */
	bool changed;	  /* it was, since the shell has looked at it last */
	bool ended;	  /* the process has; loaded is the last look at it, if there was one */
	/* the highest exit code so far, and its error's code: for the table of several processes */
	enum hm_exit worst;
	char worst_code[48];
	bool asks;    /* a dry run before the question whether it shall be done */
	bool oneshot; /* nothing follows this command */
	bool quit;
	bool go_on;	       /* on-error continue: of the runbook that runs */
	bool unmet;	       /* a `require` of it was not met: it stops all the same */
	bool stopped;	       /* what stands behind the last command is not to be run */
	int depth;	       /* of source */
	struct trim_mark trim; /* the last one in this session */
	struct {
		bool known, on; /* the last time that this session has switched the sampling of
				   heap profiles, or has all samples forgotten */
		struct timespec at;
	} prof;
	/* numbers of jemalloc's arenas, as it has told last: for completion */
	unsigned arena[CONTEXT_ARENAS];
	size_t arenas;
	bool rate_known; /* `watch` has counted minor faults before it, */
	double rate;	 /* so many a second */
};

/*
 * The process, open and with fresh maps. Exit 2 if there is no target, 3 if it is gone, else what
 * process_open says. It stays open until context_end.
 */
HM_MUST_CHECK int context_process(struct context *c, struct process **out, struct diag *d);
/*
 * Goes on with another process: what was done to the one so far is ended first. Where pid cannot be
 * opened, all stays as it is. named: it was given by its name, alone.
 */
HM_MUST_CHECK int context_attach(struct context *c, pid_t pid, bool named, struct diag *d);
/* Fills d with exit 3, and that there is `attach`. Returns -ESRCH. */
int context_ended(const struct context *c, struct diag *d);
/* What a command starts from. One-way settings hold whoever made them. */
struct settings context_settings(const struct context *c);
/* Gives settings to the process; a session that was opened with others is ended. */
HM_MUST_CHECK int context_sync(struct context *c, struct diag *d);
/* Lets a proxy wait at no cost until the next command. */
void context_park(struct context *c);
/*
 * Ends the session, if there is one, but keeps the process. warn (size bytes) gets what was not as
 * before, or "". 0 or session_close's error.
 */
HM_MUST_CHECK int context_end_session(struct context *c, char *warn, size_t size, struct diag *d);
/* Ends everything; what was not as before is told. Returns the exit code: HM_OK or the error's. */
enum hm_exit context_end(struct context *c);

/* Remembers d, if its exit code is the highest so far. */
void context_failed(struct context *c, const struct diag *d);
/* What stands behind what a dry run would do: ", nothing was done", or nothing before a question.
 */
const char *context_undone(const struct context *c);
/* "FILE:3", "-e:1", "shell" or NULL for the command line. */
const char *origin_text(const struct origin *o, char *buf, size_t size);
/* When what is answered was true: now, or when the snapshot was taken. */
void context_time(const struct context *c, struct timespec *out);
/* Tells an error that belongs to no command: as text, and with --json as an object too. */
void context_error(struct context *c, const struct diag *d);
/* Talk: one line on err unless --quiet. context_verbose only with -v. */
void context_note(struct context *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void context_verbose(struct context *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
