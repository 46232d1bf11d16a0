// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SCRIPT_H
#define HM_SCRIPT_H
#include <stddef.h>
#include <stdio.h>

#include "context.h"

/*
 * Commands from text. All stop at the first command that fails, tell it with its place, and return
 * its exit code. Text that is there as a whole (file, -e) is checked before its first command runs,
 * so that a typing error in the last line does not leave half a runbook done.
 */
enum hm_exit script_text(struct context *c, const char *name, unsigned first_line, const char *text,
			 size_t len);
/* A runbook with its $1..; "-" is stdin, line by line. */
enum hm_exit script_file(struct context *c, const char *path, int argc, char *const *argv);
enum hm_exit script_stream(struct context *c, const char *name, FILE *in);
/* The commands of -e, numbered -e:1, -e:2 .. by their lines. */
enum hm_exit script_exprs(struct context *c, char *const *expr, size_t n);

/* Parses and checks text like script_text, runs nothing: 0 or exit 2, told already. */
enum hm_exit script_check(struct context *c, const char *name, unsigned first_line,
			  const char *text, size_t len);
/* A file of at most 64 MiB ("-": stdin) as a string; the caller frees it. Exit 2 with the cause. */
HM_MUST_CHECK int script_read(const char *path, char **text, size_t *len, struct diag *d);
#endif
