// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OWNER_TEXT_H
#define HM_OWNER_TEXT_H
#include "../agent/owners.h"

#define OWNER_ROW_TEXT 192
/* "libc.so.6 and 12 more": what a row of the owners' table is of. Escaped. buf is returned. */
const char *owner_row_text(const struct owner_row *row, char *buf, size_t size);
#endif
