// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load_file.h"
#include "outfile.h"
#include "snapshot.h"
#include "snapshot_text.h"

#define FILE_MAX ((size_t)128 << 20) /* compressed; there is no larger text */

int snapshot_decode(const unsigned char *bytes, size_t len, const char *name, struct snapshot *out,
		    struct diag *d)
{
	char *text = NULL;
	size_t n = 0;
	int err = snapshot_inflate(bytes, len, name, &text, &n, d);

	if (err)
		return err;
	err = snapshot_parse(text, n, name, out, d);
	free(text);
	return err;
}

/* ---- reading */

static int unreadable(const char *path, int err, struct diag *d)
{
	if (err == -ENOMEM)
		return diag_internal(d, err, "reading a snapshot");
	if (err == -EFBIG)
		return snapshot_is_none(path, d);
	return diag_fail(d, err, HM_USAGE, "cannot-read", "give the path of a snapshot",
			 "cannot read %.150s: %s", path, strerror(-err));
}

int snapshot_load(const char *path, struct snapshot *out, struct diag *d)
{
	unsigned char *bytes = NULL;
	size_t len = 0;
	int err = load_file(path, FILE_MAX, &bytes, &len);

	if (err)
		return unreadable(path, err, d);
	err = snapshot_decode(bytes, len, path, out, d);
	free(bytes);
	return err;
}

/* ---- writing */

static const struct outfile_kind snapshot_kind = { "snapshot", snapshot_begins, false };

int snapshot_save(const char *path, const unsigned char *bytes, size_t len, bool force,
		  struct diag *d)
{
	return outfile_save(path, bytes, len, &snapshot_kind, force, d);
}

int snapshot_place(const char *path, bool force, struct diag *d)
{
	return outfile_check(path, &snapshot_kind, force, d);
}
