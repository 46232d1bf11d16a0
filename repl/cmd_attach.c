// SPDX-License-Identifier: GPL-3.0-or-later
/* attach: another process in the same shell. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "targets.h"

/* Which of several is meant only a pid tells. */
static int too_many(const char *name, const pid_t *pid, size_t n, struct diag *d)
{
	char list[160] = "";
	size_t used = 0, i;

	for (i = 0; i < n && used < sizeof(list) - 32; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%d", i ? ", " : "",
					 (int)pid[i]);
	return diag_fail(d, -EINVAL, HM_USAGE, "several", "attach one of them by its pid",
			 "%zu processes are named %.60s: %s%s", n, name, list,
			 i < n ? " and more" : "");
}

int cmd_attach(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct selector s = { .text = a->argv[0] };
	pid_t *pid = NULL, number;
	size_t n = 0;
	int err;

	(void)r;
	if (!c->interactive)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "give the process with -p or -n",
				 "attach is for the shell: a runbook works on the one it is given");
	s.kind = pid_parse(s.text, &number) ? SELECT_PID : SELECT_NAME;
	err = targets_resolve(&s, 1, &pid, &n, d);
	if (!err && n > 1)
		err = too_many(s.text, pid, n, d);
	if (!err)
		err = context_attach(c, pid[0], s.kind == SELECT_NAME, d);
	free(pid);
	return err;
}
