// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OUTFILE_H
#define HM_OUTFILE_H
#include <stdbool.h>
#include <stddef.h>

#include "../inject/diag.h"

/* Files that are written for the operator: whole or not at all, mode 0600 as a rule. */

/* What may be replaced without being forced. */
struct outfile_kind {
	const char *name; /* "snapshot" */
	/* Does a file that begins with these bytes hold such a thing? */
	bool (*begins)(const unsigned char *head, size_t n);
	bool public; /* mode 0644: another user's program reads it */
};

/*
 * May path be written? What is there must be a regular file, not reached through a symbolic link,
 * and of this kind unless force is set. Nothing is made or changed. Exit 2 where it may not be
 * replaced, 1 where it cannot be looked at.
 */
HM_MUST_CHECK int outfile_check(const char *path, const struct outfile_kind *kind, bool force,
				struct diag *d);
/*
 * The same, and then writes bytes there. The file gets its name when it is finished and on disk
 * (O_TMPFILE and linkat(2)), so that nothing half-written stays behind, not even where this process
 * is killed meanwhile; only over a file that is there, and on a file system without O_TMPFILE, it
 * has another name (.heapmedic-XXXXXX, beside it) for a moment. Exit 1 where it cannot be written;
 * nothing is left behind then.
 */
HM_MUST_CHECK int outfile_save(const char *path, const void *bytes, size_t len,
			       const struct outfile_kind *kind, bool force, struct diag *d);
#endif
