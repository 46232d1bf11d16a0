// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SNAPSHOT_TEXT_H
#define HM_SNAPSHOT_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#include "../inject/diag.h"

/* Compressed bytes and text of snapshots, which may come from anybody. */
#define SNAPSHOT_AGAIN "take it again: heapmedic -p PID snapshot FILE"

/*
 * Pure: the text of gzip's bytes, for the caller to free; not terminated. Exit 2 where it is none,
 * is cut, damaged or longer than SNAPSHOT_TEXT_MAX.
 */
HM_MUST_CHECK int snapshot_inflate(const unsigned char *bytes, size_t len, const char *name,
				   char **text, size_t *text_len, struct diag *d);
/* Pure: do these bytes, the beginning of a file, begin a snapshot? */
bool snapshot_begins(const unsigned char *bytes, size_t len);
/* Pure: exit 2 where jansson would make more of the text than SNAPSHOT_TREE_MAX. */
HM_MUST_CHECK int snapshot_bounded(const char *text, size_t len, const char *name, struct diag *d);
/* Fills d and returns -EINVAL: exit 2, name is no snapshot. */
int snapshot_is_none(const char *name, struct diag *d);
#endif
