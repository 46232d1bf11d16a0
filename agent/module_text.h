// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MODULE_TEXT_H
#define HM_MODULE_TEXT_H
#include "../inject/modules.h"

/* The longest needle with what follows it. */
#define MODULE_TEXT_MAX 64

/*
 * Looks in what mod's file has that is not written to (constants first, then code, as old linkers
 * put both into one segment) for needle, and copies what follows it there, up to its NUL, to buf;
 * what does not fit is cut. Reads at most *budget bytes and takes off what it has read. -ENOENT,
 * -ENOMEM.
 */
HM_MUST_CHECK int module_text_find(const struct module *mod, const char *needle, size_t *budget,
				   char *buf, size_t size);
#endif
