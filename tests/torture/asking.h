// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef TORTURE_ASKING_H
#define TORTURE_ASKING_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Asking heapmedic about a process that something stands in the way of. */

/* What one command says of a process: its exit code, and the code of its error or "". */
struct answer {
	int exit;
	char code[40], text[1024];
};

/* How somebody asks. */
struct asking {
	bool nobody;		    /* as that user */
	const char *const *through; /* a program with its arguments, which becomes heapmedic */
	const char *how;	    /* option of check; NULL: none */
	bool no_leak_check;	    /* LeakSanitizer needs ptrace(2), which is filtered */
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

extern const struct asking plain, holding, as_nobody;

const char *heapmedic_path(void);
bool is_root(void);
bool in_list(const char *const *list, size_t n, const char *word);
/* One command, with an option or NULL. Requires an answer in JSON, with a next step if it failed.
 */
void ask(pid_t pid, const struct asking *a, const char *command, const char *option,
	 struct answer *out);
/*
 * check and trim say the same, and it is this: exit and error code ("" for none). part is something
 * that the text names, or NULL.
 */
void both_say(pid_t pid, const struct asking *a, int exit, const char *code, const char *part);
/* A victim (at most two arguments) of which both say so, and which is as it was. */
void victim_of(const char *name, const char *arg1, const char *arg2, int exit, const char *code);
#endif
