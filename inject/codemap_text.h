// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CODEMAP_TEXT_H
#define HM_CODEMAP_TEXT_H
#include <stdbool.h>
#include <stdint.h>

#include "diag.h"

struct module;

/* A copy of a module's instructions, from its file: reading them in the target would fault them in.
 * Only shapes that do not need a decoder are looked for; each may also fit by chance. */
struct code_text {
	uint64_t lo, hi;
	unsigned char *bytes; /* NULL: not known */
};

/* Leaves t empty if the bytes cannot be had. -ENOMEM. */
HM_MUST_CHECK int code_text_read(struct code_text *t, const struct module *mod, uint64_t lo,
				 uint64_t hi);
void code_text_free(struct code_text *t);
/* A `syscall` instruction ends at addr. */
bool code_text_after_syscall(const struct code_text *t, uint64_t addr);
/* A call instruction, direct or indirect, may end at addr; true also if the bytes are not known. */
bool code_text_after_call(const struct code_text *t, uint64_t addr);
/* The next indirect call through a register, or through memory at displacement field (0: none),
 * from *at on and up to hi. Moves *at behind it. */
bool code_text_next_indirect(const struct code_text *t, uint64_t *at, uint64_t hi, uint32_t field,
			     uint64_t *call);
/* The next restorer of signal handlers: mov $15, %rax; syscall (glibc's is found by unwinders in
 * the same way). Moves *at. */
#define CODE_TRAMPOLINE_LEN 9
bool code_text_next_trampoline(const struct code_text *t, uint64_t *at, uint64_t hi,
			       uint64_t *found);
#endif
