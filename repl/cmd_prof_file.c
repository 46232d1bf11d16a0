// SPDX-License-Identifier: GPL-3.0-or-later
#include "prof.h"

#include <errno.h>

#include "context.h"

int check_prof_top(const struct args *a, struct diag *d)
{
	(void)a;
	(void)d;
	return 0;
}

int check_prof_export(const struct args *a, struct diag *d)
{
	(void)a;
	(void)d;
	return 0;
}

int prof_top(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	(void)c;
	(void)a;
	(void)r;
	return diag_internal(d, -ENOSYS, "prof top");
}

int prof_export(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	(void)c;
	(void)a;
	(void)r;
	return diag_internal(d, -ENOSYS, "prof export");
}

int prof_diff(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	(void)c;
	(void)a;
	(void)r;
	return diag_internal(d, -ENOSYS, "prof diff");
}
