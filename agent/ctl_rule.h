// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CTL_RULE_H
#define HM_CTL_RULE_H
#include "mallctl.h"

/* What may be asked of a mallctl name from outside, and what its refusals mean. Pure. */

/*
 * May the name be used as asked (write: with a value)? 0, or a diag: exit 6 for what is never done
 * from outside, exit 5 for types that cannot be passed, exit 1 for a write to a read-only name (as
 * mallctl would say), exit 2 for a missing or superfluous value.
 */
HM_MUST_CHECK int ctl_check(const struct ctl_name *row, const char *name, bool write,
			    struct diag *d);
/* May this value be written to it? Exit 6 for one that must not be set from outside. */
HM_MUST_CHECK int ctl_check_value(const struct ctl_name *row, const struct ctl_value *value,
				  struct diag *d);
/*
 * Fills d with exit 1 and a sentence for what mallctl returned (a positive errno), from the row's
 * condition and the version ("" if not known). Returns -rc.
 */
int ctl_error(const struct ctl_name *row, const char *name, const char *version, bool write, int rc,
	      struct diag *d);
/* "5.3.0..." to 0x050300, 0 if text is not a version. */
unsigned ctl_version(const char *text);
#endif
