// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CTL_RULE_H
#define HM_CTL_RULE_H
#include "ctl_build.h"
#include "mallctl.h"

/* What may be asked of a mallctl name from outside. What its refusals mean is in ctl_error.h. Pure.
 */

/* Is the index that stands for all arenas (MALLCTL_ARENAS_ALL, 4096) good for the name? */
bool ctl_takes_all(const struct ctl_name *row);

/*
 * May the name be used as asked (write: with a value)? 0, or a diag: exit 6 for what is never done
 * from outside, exit 5 for types that cannot be passed, exit 1 for a write to a read-only name (as
 * mallctl would say), exit 2 for a missing or superfluous value.
 */
HM_MUST_CHECK int ctl_check(const struct ctl_name *row, const char *name, bool write,
			    struct diag *d);
/*
 * May this value be written to it? Exit 6 for one that must not be set from outside, 2 for a decay
 * time that jemalloc has no room for (decay_ms_valid).
 */
HM_MUST_CHECK int ctl_check_value(const struct ctl_name *row, const struct ctl_value *value,
				  struct diag *d);
/* "5.3.0..." to 0x050300, 0 if text is not a version. */
unsigned ctl_version(const char *text);
#endif
