// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LOAD_FILE_H
#define HM_LOAD_FILE_H
#include <stddef.h>

#include "../inject/diag.h"

/*
 * All bytes of a file, also of a pipe. 0, and the caller frees *out, which has a NUL behind them;
 * -EFBIG where it has more than max, else the errno of open or read, -ENOMEM.
 */
HM_MUST_CHECK int load_file(const char *path, size_t max, unsigned char **out, size_t *len);
#endif
