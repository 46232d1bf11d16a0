// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LINE_H
#define HM_LINE_H
#include "context.h"

/*
 * The interactive shell on the terminal at stdin, for c's one target. Returns when the person
 * leaves, or SIGTERM or SIGHUP comes; the exit code is that of the last command. When the target
 * ends, it goes on with the last look at it.
 */
enum hm_exit line_shell(struct context *c);
#endif
