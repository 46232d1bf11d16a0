// SPDX-License-Identifier: GPL-3.0-or-later
#include "diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cause.h"

void diag_clear(struct diag *d)
{
	memset(d, 0, sizeof(*d));
}

int diag_fail(struct diag *d, int err, enum hm_exit exit, const char *code, const char *hint,
	      const char *fmt, ...)
{
	va_list ap;

	if (!d)
		return err;
	d->exit = exit;
	snprintf(d->code, sizeof(d->code), "%s", code);
	snprintf(d->hint, sizeof(d->hint), "%s", hint ? hint : "");
	va_start(ap, fmt);
	vsnprintf(d->text, sizeof(d->text), fmt, ap);
	va_end(ap);
	return err;
}

int diag_internal(struct diag *d, int err, const char *what)
{
	if (err == -EMFILE || err == -ENFILE)
		return cause_fail(d, err, CAUSE_NO_DESCRIPTORS,
				  "heapmedic has no descriptor left: %s: %s", what, strerror(-err));
	return diag_fail(d, err, HM_INTERNAL, "internal",
			 "the target was restored; please report this with the output of `check`",
			 "%s: %s", what, strerror(-err));
}
