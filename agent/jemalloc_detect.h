// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_DETECT_H
#define HM_JEMALLOC_DETECT_H
#include "../inject/modules.h"

/*
 * jemalloc in a module: by its mallctl, whose name a build may prefix. prefix gets "", "je_",
 * "_rjem_", "_rjem_je_" or "jemalloc_". False if it is not there.
 */
bool jemalloc_prefix(const struct module *mod, char *prefix, size_t size);

/*
 * The version without a call: a build from a release or from git has its "git describe" in its
 * read-only data ("5.3.0-0-g54eaed1d..."). Shortened: "5.3.0", or "5.3.0-113" for a build 113
 * commits later. Reads at most 256 MiB of the file. -ENOENT if there is none.
 */
HM_MUST_CHECK int jemalloc_passive_version(const struct module *mod, char *buf, size_t size);

/*
 * Pure: finds such a string in data; shortened into buf. -ENOENT. A string that starts before data
 * or ends behind it is not found.
 */
HM_MUST_CHECK int jemalloc_version_find(const char *data, size_t len, char *buf, size_t size);
/* Pure: shortens what mallctl "version" says in the same way; other text is copied. */
void jemalloc_version_shorten(const char *text, char *buf, size_t size);
#endif
