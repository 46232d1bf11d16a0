// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_INFO_XML_H
#define HM_GLIBC_INFO_XML_H
#include "glibc_info.h"

/*
 * Parses the first malloc_info in text with expat: also with text glued around and between its
 * lines, with quotes escaped as in a JSON log, or cut (flagged: the arenas that are complete
 * count). Declarations of entities are refused. Where there is none, the text of malloc_stats (see
 * glibc_stats.h). The printed "rest" sizes contain the flag bits of each chunk's size field; they
 * are taken out as far as the rows say how many: to the byte, but for rows of many chunks of
 * several sizes in a thread arena, some of which lack its mark (16 bytes for each four of them).
 * -EINVAL with a diag (exit 1, "bad-malloc-info") when
 * there is neither, -ENOMEM. The caller ends out with glibc_info_free.
 */
HM_MUST_CHECK int glibc_info_parse(const char *text, size_t len, struct glibc_info *out,
				   struct diag *d);
#endif
