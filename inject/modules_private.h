// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MODULES_PRIVATE_H
#define HM_MODULES_PRIVATE_H
#include "modules.h"

/* What modules_load leaves for the lazy look-ups in modules.c. */
struct module_extra {
	const struct modules_private *all;
	bool debug_tried; /* the separate debug file was looked for */
};

struct modules_private {
	int procfd; /* a duplicate of the target's, for files opened later */
	struct module_extra *extra;
};

/* Adds the separate debug file, if there is one; looks only once. */
void module_need_debug(const struct module *mod);
#endif
