// SPDX-License-Identifier: GPL-3.0-or-later
#include "cause.h"

#include <stdarg.h>
#include <stdio.h>

static const struct cause_row rows[] = {
#define X(id, code, exit, remedy) [CAUSE_##id] = { code, exit, remedy },
	HM_CAUSES(X)
#undef X
};

const struct cause_row *cause_row(enum cause c)
{
	return (unsigned)c < CAUSES ? &rows[c] : NULL;
}

int cause_fail(struct diag *d, int err, enum cause c, const char *fmt, ...)
{
	const struct cause_row *row = cause_row(c);
	char text[sizeof(d->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return diag_fail(d, err, row->exit, row->code, row->remedy, "%s", text);
}
