// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_IN_ROOT_H
#define HM_IN_ROOT_H

/*
 * An O_PATH descriptor of path as the process behind procfd (its /proc directory) would resolve it:
 * below its root, in its mounts, and no link leads out of there. -1 with errno; the caller closes.
 */
int open_in_root(int procfd, const char *path);
#endif
