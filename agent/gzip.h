// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GZIP_H
#define HM_GZIP_H
#include <stddef.h>

#include "../inject/diag.h"

/* Pure: the same bytes in a gzip file (RFC 1952), which the caller frees. -ENOMEM. */
HM_MUST_CHECK int gzip_bytes(const void *data, size_t len, unsigned char **out, size_t *out_len);
#endif
