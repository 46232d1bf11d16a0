// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TEST_TOOLCHAIN_H
#define HM_TEST_TOOLCHAIN_H
#include <stdbool.h>
#include <sys/types.h>

/* Programs and libraries that a test has built for itself, in a directory of its own. */

/* A new empty directory; the caller ends it with tool_clean. */
char *tool_dir(void);
void tool_clean(char *dir);
/* Compiles source to dir/name with cc; the test fails if that fails. flags may name other files as
 * they are seen from dir. */
void tool_build(const char *dir, const char *name, const char *source, const char *flags);
/* Runs a shell command in dir; true if it succeeds. */
bool tool_run(const char *dir, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes a file dir/name. */
void tool_write(const char *dir, const char *name, const char *text);
/* "dir/name"; the caller frees it. */
char *tool_path(const char *dir, const char *name);
/*
 * Starts dir/name with `preload` as LD_PRELOAD (or NULL) and waits until it sleeps in pause(2). It
 * dies with the test; end it with child_end.
 */
pid_t tool_start(const char *dir, const char *name, const char *preload);
#endif
