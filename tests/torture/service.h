// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef TORTURE_SERVICE_H
#define TORTURE_SERVICE_H
#include <stdbool.h>

#include "../live/victim.h"

/*
 * A server of a Debian package, started by the test itself: data, socket and log in a directory of
 * its own under /tmp, nothing of the machine's own installation is used. As in tests/live, nothing
 * here returns an error: what goes wrong fails the test.
 */
struct service {
	struct victim v;
	const char *user; /* who it runs as where we are root; NULL: as we do */
	char dir[64], log[96], socket[128];
};

/* Skips the test, loudly, where the program is missing. It may stand in /usr/sbin. */
void service_needs(const char *program, const char *package);
/* Makes the directory, which belongs to that user; skips the test where there is no such user. */
void service_dir(struct service *s, const char *user, const char *package);
/* Runs a program as that user to its end and requires exit 0; input (may be NULL) is a file that it
 * reads. What it says goes to the log. */
void service_run(const struct service *s, const char *const *argv, const char *input);
/* Starts it, in the foreground; what it says goes to the log too. */
void service_start(struct service *s, const char *const *argv);
/* Waits until the log says so. */
void service_await(const struct service *s, const char *text);
/* Asks it to end by a signal, requires exit 0, and removes the directory. */
void service_stop(struct service *s, int sig);
/* Writes a file in the directory; its path in a static buffer. */
const char *service_file(const struct service *s, const char *name, const char *text);
#endif
