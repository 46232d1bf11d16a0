// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MODULES_PRIVATE_H
#define HM_MODULES_PRIVATE_H
#include "modules.h"

/* What modules_load leaves for the lazy look-ups in modules.c. */
struct module_extra {
	const struct modules_private *all;
	bool debug_tried;	       /* the separate debug file was looked for */
	const struct code_range *code; /* what of it can be executed */
	size_t codes;
};

struct code_range {
	uint64_t start, end;
};

struct modules_private {
	int procfd; /* a duplicate of the target's, for files opened later */
	struct module_extra *extra;
	struct code_range *code; /* of all modules, one after another */
};

/*
 * Finds what of each module is code: executable, inside of it, and of its own file or of none (its
 * code was moved to other pages). Whatever changes that changes what modules are found by. -ENOMEM.
 */
HM_MUST_CHECK int modules_take_code(struct modules *m, const struct maps *maps);

/* A symbol of the file as one of the target. */
void module_symbol_fill(const struct module *mod, const struct elf_sym *s, struct symbol *out);
/* Adds the separate debug file, if there is one; looks only once. */
void module_need_debug(const struct module *mod);
#endif
