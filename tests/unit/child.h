// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TEST_CHILD_H
#define HM_TEST_CHILD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../inject/maps.h"
#include "../../inject/modules.h"
#include "../../inject/target.h"

/* Children that tests look at. Each dies with its test, and lets anybody trace it. */

/* Forks a child that runs fn(arg) and exits; fn usually never returns. */
pid_t child_start(void (*fn)(void *), void *arg);
/* fn for child_start: sleeps for ever. */
void child_sleep(void *unused);
/* Waits (without a fixed time, up to a generous limit) until thread tid of pid is in that state;
 * false at once when it has ended instead. */
bool child_reach(pid_t pid, pid_t tid, char state);
/* The same until it is asleep in that system call. */
bool child_reach_call(pid_t pid, pid_t tid, long nr);
/* Waits until *flag, shared with the child, has at least that value. */
bool child_reach_value(const volatile uint32_t *flag, uint32_t value);
/* Zeroed memory that parent and child share. */
void *child_shared(size_t len);
void child_end(pid_t pid);

/* Opens a process and reads its maps and modules; the test fails if that fails. */
void child_look(pid_t pid, struct target *t, struct maps *maps, struct modules *mods);
void child_look_away(struct target *t, struct maps *maps, struct modules *mods);

/* A file below tests/fixtures, NUL-terminated; the test fails if it cannot be read. Caller frees.
 */
char *fixture_read(const char *name, size_t *len);

/* Calls fn with n damaged copies of text (bytes changed, cut, doubled), each in a heap block of its
 * exact size, so that a sanitizer sees every byte too far. */
void fuzz_text(const char *text, size_t len, unsigned n, void (*fn)(const char *text, size_t len));
#endif
