// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CTL_ERROR_H
#define HM_CTL_ERROR_H
#include "ctl_build.h"
#include "mallctl.h"

/*
 * What a return code of mallctl means (src/ctl.c of jemalloc 4.5 to 5.3.1). Pure.
 *
 * Fills d with exit 1 and a sentence for what mallctl returned (a positive errno): it depends on
 * the name, on whether a value was written, on the version and on what the build has said of
 * itself. Returns -rc; -EPROTO for what is no errno.
 */
int ctl_error(const struct ctl_name *row, const char *name, const struct ctl_build *b, bool write,
	      int rc, struct diag *d);
/*
 * The same for EINVAL where mallctl has also said how many bytes it has for the name (*oldlenp):
 * then this build has another type there.
 */
int ctl_error_size(const struct ctl_name *row, const char *name, const struct ctl_build *b,
		   uint64_t got, struct diag *d);
/* "it came with 5.3.0, the target has 5.2.1", or false if this version can have the name. */
bool ctl_missing_in(const struct ctl_name *row, const char *version, char *text, size_t size);
#endif
