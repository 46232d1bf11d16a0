// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SIZE_H
#define HM_SIZE_H
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * Sizes and times as people type and read them. Pure. Units are binary for sizes: K = 1024.
 */

/*
 * "4096", "512M", "1.5G", "64KiB", "1 GiB" (K M G T P, any case, an "iB" or "B" after it, one blank
 * before the unit). Part of a byte is cut off. -EINVAL if text is no size (also if negative, and a
 * fraction without a unit), -ERANGE if it does not fit.
 */
HM_MUST_CHECK int size_parse(const char *text, uint64_t *bytes);

/* "500us", "2s", "1.5m", "3h", "1d", "20ns", "15ms"; without a unit: seconds. Errors as above. */
HM_MUST_CHECK int time_parse(const char *text, uint64_t *ns);

/* The same with a diag: exit 2, code "bad-size" or "bad-time", what is the name of the value. */
HM_MUST_CHECK int size_parse_arg(const char *what, const char *text, uint64_t *bytes,
				 struct diag *d);
HM_MUST_CHECK int time_parse_arg(const char *what, const char *text, uint64_t *ns, struct diag *d);

/* A formatted size or time always fits here. */
#define SIZE_TEXT 32

/* For tables: "512.3 MiB", "3.9 GiB", one decimal; below 1 KiB "17 B". Returns buf. */
const char *size_format(uint64_t bytes, char buf[SIZE_TEXT]);
/* For the one line of a trim: as size_format, but from GiB on with two decimals: "3.94 GiB". */
const char *size_format_fine(uint64_t bytes, char buf[SIZE_TEXT]);
/* size_format_fine of a difference with its sign: "-3.44 GiB", "+12.0 KiB", "0 B". */
const char *size_format_delta(int64_t bytes, char buf[SIZE_TEXT]);
/* "42 us", "0.3 ms", "61 ms", "2.0 s", "10.5 m", "3.0 h". */
const char *time_format(uint64_t ns, char buf[SIZE_TEXT]);
#endif
