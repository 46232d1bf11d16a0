// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OBJFILE_H
#define HM_OBJFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "image.h"
#include "maps.h"

/*
 * Opens the file behind the mapping head (offset 0 of the object im) for reading: by
 * /proc/PID/map_files, which is the very file that is mapped (proc(5); CAP_SYS_ADMIN or
 * CAP_CHECKPOINT_RESTORE), for the program itself by /proc/PID/exe, else by its path below
 * /proc/PID/root. A file found by path must be the one that is mapped: same inode and device, or,
 * where a file system shows other numbers in maps than in stat (overlayfs, btrfs), the same first
 * page and build id as in memory. Regular files only; never blocks, follows no link out of the
 * target's root. -ESTALE if another file is there now.
 */
HM_MUST_CHECK int objfile_open(int procfd, const struct map *head, const struct image *im,
			       bool is_main, int *fd);
/*
 * Opens the separate debug file for a build id: /usr/lib/debug/.build-id/xx/yyyy.debug below the
 * target's root, then on this host. -ENOENT.
 */
HM_MUST_CHECK int objfile_open_debug(int procfd, const unsigned char *id, size_t len, int *fd);
/*
 * Opens a file by its absolute path for reading: below the root of the process procfd, and one
 * below /usr/lib/debug then on this host; with procfd -1 on this host only. Regular files that are
 * not empty and not the kernel's own (/proc, /sys): -EINVAL. The errno of open(2).
 */
HM_MUST_CHECK int objfile_open_path(int procfd, const char *path, int *fd);
#endif
