// SPDX-License-Identifier: GPL-3.0-or-later
#include "confirm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "nap.h"

/* One line from the terminal, which hands over whole lines (termios(3), canonical mode). */
static bool said_yes(void)
{
	char line[64];
	ssize_t n = nap_input(STDIN_FILENO) ? read(STDIN_FILENO, line, sizeof(line) - 1) : 0;

	if (n <= 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

int confirm_ask(struct context *c, const char *command, struct diag *d)
{
	fprintf(c->sink->err, "%s changes %s (pid %d). Go on? [y/N] ", command, c->comm,
		(int)c->pid);
	fflush(c->sink->err);
	if (said_yes())
		return 0;
	return diag_fail(d, -ECANCELED, HM_NOT_PERMITTED, "not-confirmed",
			 "answer y, or run it with --yes", "%s was not confirmed, nothing was done",
			 command);
}
