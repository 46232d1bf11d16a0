// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_COMMAND_H
#define HM_COMMAND_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "../inject/diag.h"
#include "settings.h"

struct context;

enum command_flag {
	CMD_PASSIVE = 1,     /* p: reads from outside */
	CMD_HOLDS = 2,	     /* s: holds a thread for a moment */
	CMD_CALLS = 4,	     /* c: calls into the target */
	CMD_WRITES = 8,	     /* w: changes the target */
	CMD_EXPERT = 16,     /* x */
	CMD_NO_PROCESS = 32, /* needs no process */
	CMD_CONTROL = 64,    /* steers the run: no JSON unless it fails */
	CMD_LOADED = 128,    /* a snapshot does as well (--load) */
	CMD_PREFIX =
		256, /* another command follows: what stands behind its first word is no option */
	CMD_SELECTS = 512,  /* finds the processes that the command line names itself */
	CMD_STREAMS = 1024, /* what it says is to be seen at once: it waits, or runs others */
};

/* An option of one command; long names only. */
struct command_option {
	const char *name;
	const char *meta; /* NULL: takes no value */
	const char *help;
};

/*
 * A line as it is typed, and what it is for. One that begins with the command's name is typed in
 * heapmedic's own shell or stands in a runbook, the others are typed in a shell of the system.
 */
#define COMMAND_EXAMPLES 5
struct command_example {
	const char *line, *what;
};

/* What an exit code means of this command, where that is not what it means of all (exits.h). */
#define COMMAND_EXITS 3
struct command_exit {
	enum hm_exit code;
	const char *when;
};

/* What the words behind a command complete to. */
enum completion {
	COMPLETE_NONE,
	COMPLETE_COMMAND,
	COMPLETE_CTL,
	COMPLETE_MALLOPT,
	COMPLETE_SET,
	COMPLETE_TID,
	COMPLETE_FILE,
	COMPLETE_FACT,
	COMPLETE_PROF,
	COMPLETE_PROCESS,
	COMPLETE_ARENA,
	COMPLETE_USAGE /* what the usage names */
};

/* The words of one command, checked against its row. */
#define COMMAND_OPTIONS 12
struct args {
	int argc; /* without the command's name and without options */
	char **argv;
	const char *opt[COMMAND_OPTIONS]; /* by the row's order; NULL: not given; "" if it has no
					     value */
	char *const *words;		  /* as they were given, then NULL */
};

/* One command's answer, apart from what it prints as text. */
struct reply {
	json_t *result;
	json_t *warnings;
	json_t *said; /* as text, before the question; NULL: nothing */
	bool failed;  /* an allocation failed: the answer is not whole */
	bool silent;  /* the error has been told already */
};

struct command {
	const char *name, *alias;
	unsigned flags;
	const char *usage; /* what follows the name */
	int min, max;	   /* words; max -1: any number */
	enum completion completes;
	const char *help; /* one line */
	const char *more; /* what it does, at length; whole lines. NULL: help says it all */
	struct command_option options[COMMAND_OPTIONS];	   /* up to the first without a name */
	struct command_example examples[COMMAND_EXAMPLES]; /* up to the first without a line */
	struct command_exit exits[COMMAND_EXITS];	   /* up to the first without a text */
	/* Are the words values of their types? Exit 2; NULL: nothing to check. Pure. */
	int (*check)(const struct args *a, struct diag *d);
	/* Flags for these words where they differ from the row's; NULL: they never do. */
	unsigned (*effect)(const struct args *a);
	int (*run)(struct context *c, const struct args *a, struct reply *r, struct diag *d);
};

const struct command *command_table(size_t *n);
/* By name or alias, NULL if there is none. */
const struct command *command_find(const char *name);
/* Fills d with exit 2 and the nearest name. Returns -EINVAL. */
int command_unknown(const char *name, struct diag *d);
/* Index of an option of row by its name without dashes, -1 if it has none such. */
int command_option(const struct command *row, const char *name, size_t len);
/* "pcw" for these flags; buf holds 6. */
const char *command_letters(unsigned flags, char buf[6]);

/*
 * Checks argv (the command's name first) against row and its check: own options go to *out, options
 * that may stand behind any command are applied to *s, the other words are counted. *out->argv is
 * allocated; args_free. Exit 2 with the nearest option. Pure.
 */
HM_MUST_CHECK int args_parse(const struct command *row, int argc, char *const *argv,
			     struct args *out, struct settings *s, struct diag *d);
void args_free(struct args *a);

/* Exit 2 where a snapshot is loaded, and row with these words needs the process itself; 3 where
 * that has ended. */
HM_MUST_CHECK int command_fits(const struct context *c, const struct command *row,
			       const struct args *a, struct diag *d);

/*
 * Runs one command: checks, asks, writes the audit records, runs, answers. Returns its exit code;
 * errors are told already.
 */
enum hm_exit command_run(struct context *c, int argc, char *const *argv);

/* ---- for the commands */
/* Takes v over; a NULL v is a failed allocation. */
void reply_set(struct reply *r, const char *key, json_t *v);
void reply_warn(struct context *c, struct reply *r, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds a member to an object; an allocation that fails is remembered in r. */
void reply_member(struct reply *r, json_t *object, const char *key, json_t *v);
#endif
