// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_AUDIT_H
#define HM_AUDIT_H
#include "../inject/diag.h"
#include "../inject/target.h"

/*
 * Who did what to which process: one JSON line before and one after each change. Looking writes
 * none.
 */
struct audit;

/*
 * spec is a file (made with mode 0600, appended to, no symbolic link followed) or "syslog". Exit 1
 * with the cause if it cannot be opened. The caller ends it with audit_close.
 */
HM_MUST_CHECK int audit_open(const char *spec, struct audit **out, struct diag *d);
void audit_close(struct audit *a); /* NULL is allowed */

struct audit_record {
	const struct target *t;
	char *const *argv;  /* the command's words, then NULL */
	const char *phase;  /* "before" or "after" */
	const char *result; /* "" before; "ok" or the error's code after */
};
/* Writes one record and waits until it is on the disk. 0 or exit 1 with the cause: then the change
 * must not be made. a NULL: 0. */
HM_MUST_CHECK int audit_write(struct audit *a, const struct audit_record *r, struct diag *d);
#endif
