// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_INSN_H
#define HM_INSN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A decoder for the few dozen instructions that compilers make around system calls; Intel SDM
 * volume 2 for the encodings.
 */

/* The register numbers of instruction encodings. */
enum insn_register { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };
#define INSN_BIT(r)  (1U << (r))
#define INSN_LONGEST 15 /* bytes */

enum insn_flow { FLOW_NEXT, FLOW_BRANCH, FLOW_JUMP, FLOW_CALL, FLOW_RETURN };

struct insn {
	size_t len;
	unsigned reads, writes; /* registers; writes: the whole of one */
	enum insn_flow flow;
	int32_t to; /* relative to the next instruction */
	int base;   /* of an operand in memory: its base register, -1 none */
	bool indexed;
	int32_t disp;
	int32_t imm;
	/* what becomes of the stack pointer */
	bool sp_unknown, sp_from_rbp;
	int32_t sp_by;
};

/* Pure: the instruction at code, of which len bytes are known. False where it is none that this
 * knows. */
bool insn_decode(const uint8_t *code, size_t len, struct insn *out);
#endif
