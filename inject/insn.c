// SPDX-License-Identifier: GPL-3.0-or-later
#include "insn.h"

#include <string.h>

#define SYSCALL_READS                                                                              \
	(INSN_BIT(RAX) | INSN_BIT(RDI) | INSN_BIT(RSI) | INSN_BIT(RDX) | INSN_BIT(R10) |           \
	 INSN_BIT(R8) | INSN_BIT(R9))

/* What an opcode does with its operands; E is the one in ModRM.rm, G the one in ModRM.reg. */
enum use {
	UNKNOWN,
	NONE, /* no operand */
	E_G,  /* reads both, changes one: add, or, and, sub, xor, cmp, test */
	TO_E, /* mov E, G */
	TO_G, /* mov G, E and its kin */
	LEA,
	E_IMM,	/* reads E, and an immediate follows */
	TO_IMM, /* mov E, immediate */
	E_ONLY, /* reads E: not, neg, setcc */
	NOP_E,	/* names E only: nop E, endbr64 */
};

struct cursor {
	const uint8_t *at, *end;
	unsigned rex;
	bool wide16;
};

static bool take(struct cursor *c, size_t n, int32_t *value)
{
	uint32_t v = 0;

	if ((size_t)(c->end - c->at) < n)
		return false;
	for (size_t i = 0; i < n && i < sizeof(v); i++)
		v |= (uint32_t)c->at[i] << (8 * i);
	if (n == 1)
		*value = (int32_t)(v ^ 0x80) - 0x80;
	else
		*value = (int32_t)v;
	c->at += n;
	return true;
}

/* ModRM, SIB and displacement. *rm is the register E, or -1 for memory, whose registers out reads.
 */
static bool modrm(struct cursor *c, unsigned *reg, int *rm, struct insn *out)
{
	unsigned m, mod, low;

	if (c->at == c->end)
		return false;
	m = *c->at++;
	mod = m >> 6;
	low = m & 7;
	*reg = (m >> 3 & 7) | (c->rex & 4) << 1;
	*rm = -1;
	if (mod == 3) {
		*rm = (int)(low | (c->rex & 1) << 3);
		return true;
	}
	if (low == 4) {
		unsigned sib, index;

		if (c->at == c->end)
			return false;
		sib = *c->at++;
		index = (sib >> 3 & 7) | (c->rex & 2) << 2;
		low = sib & 7;
		out->indexed = index != RSP;
		if (out->indexed)
			out->reads |= INSN_BIT(index);
	}
	/* without a base: absolute, or relative to the instruction */
	if (low == 5 && mod == 0)
		return take(c, 4, &out->disp);
	out->base = (int)(low | (c->rex & 1) << 3);
	out->reads |= INSN_BIT(out->base);
	return mod == 0 || take(c, mod == 1 ? 1 : 4, &out->disp);
}

static enum use use_of(unsigned op)
{
	if (op < 0x40 && (op & 7) < 4)
		return E_G;
	switch (op) {
	case 0x84:
	case 0x85:
		return E_G;
	case 0x88:
	case 0x89:
		return TO_E;
	case 0x8a:
	case 0x8b:
	case 0x63:
		return TO_G;
	case 0x8d:
		return LEA;
	case 0x80:
	case 0x81:
	case 0x83:
	case 0xc1:
		return E_IMM;
	case 0xc6:
	case 0xc7:
		return TO_IMM;
	case 0xf6:
	case 0xf7:
		return E_ONLY;
	case 0x90:
	case 0x98:
		return NONE;
	default:
		return UNKNOWN;
	}
}

/* Opcodes behind 0x0f. */
static enum use use_of_long(unsigned op)
{
	if (op >= 0x40 && op < 0x50)
		return E_G; /* cmovcc: G may stay as it is */
	if (op >= 0x90 && op < 0xa0)
		return E_ONLY; /* setcc */
	switch (op) {
	case 0xb0:
	case 0xb1:
		return E_G; /* cmpxchg; rax as well, which is no argument */
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return TO_G;
	case 0x1e:
	case 0x1f:
		return NOP_E;
	default:
		return UNKNOWN;
	}
}

/* The operations of opcodes 80, 81 and 83, in ModRM.reg. */
enum { ADD = 0, SUB = 5, CMP = 7 };

static void add_to_sp(unsigned what, struct insn *out)
{
	if (what == ADD)
		out->sp_by = out->imm;
	else if (what == SUB && out->imm > INT32_MIN)
		out->sp_by = -out->imm;
	else
		out->sp_unknown = true;
}

/* The stack pointer as an operand in a register. */
static void move_sp(unsigned op, enum use use, bool is_long, unsigned reg, int rm, struct insn *out)
{
	bool compares = !is_long && (op >= 0x38);

	if (use == LEA && reg == RSP) {
		out->sp_by = out->disp;
		out->sp_from_rbp = out->base == RBP;
		out->sp_unknown = out->indexed || (out->base != RSP && out->base != RBP);
	} else if (use == TO_E && rm == RSP) {
		out->sp_from_rbp = reg == RBP;
		out->sp_unknown = reg != RBP;
	} else if (use == TO_G && reg == RSP) {
		out->sp_from_rbp = rm == RBP;
		out->sp_unknown = rm != RBP;
	} else if (use == TO_IMM || use == E_ONLY) {
		out->sp_unknown = rm == RSP;
	} else if (use == E_G && !compares) {
		out->sp_unknown = rm == RSP || reg == RSP;
	}
}

static bool operands(struct cursor *c, unsigned op, enum use use, bool is_long, struct insn *out)
{
	/* 8 and 16 bits leave the rest of a register as it was */
	bool whole = !c->wide16 && (is_long || (op & 1) || op == 0x63);
	size_t imm = op == 0x81 || op == 0xc7 ? (c->wide16 ? 2 : 4) : 1;
	unsigned reg;
	int rm;

	if (!modrm(c, &reg, &rm, out))
		return false;
	move_sp(op, use, is_long, reg, rm, out);
	switch (use) {
	case NOP_E:
		out->reads = 0;
		out->base = -1;
		return true;
	case E_G:
		out->reads |= INSN_BIT(reg) | (rm >= 0 ? INSN_BIT(rm) : 0);
		/* xor r, r and sub r, r read nothing */
		if ((op == 0x31 || op == 0x33 || op == 0x29 || op == 0x2b) && !is_long && whole &&
		    rm == (int)reg) {
			out->reads = 0;
			out->writes = INSN_BIT(reg);
		}
		return true;
	case TO_E:
		out->reads |= INSN_BIT(reg);
		out->writes = rm >= 0 && whole ? INSN_BIT(rm) : 0;
		return true;
	case TO_G:
	case LEA:
		out->reads |= rm >= 0 ? INSN_BIT(rm) : 0;
		out->writes = whole ? INSN_BIT(reg) : 0;
		return true;
	case E_IMM:
		out->reads |= rm >= 0 ? INSN_BIT(rm) : 0;
		if (!take(c, imm, &out->imm))
			return false;
		if (rm == RSP && (reg & 7) != CMP)
			add_to_sp(reg & 7, out);
		return true;
	case TO_IMM:
		out->writes = rm >= 0 && whole ? INSN_BIT(rm) : 0;
		return (reg & 7) == 0 && take(c, imm, &out->imm);
	default:
		out->reads |= rm >= 0 ? INSN_BIT(rm) : 0;
		if (!is_long && (op == 0xf6 || op == 0xf7)) {
			if ((reg & 7) < 2) /* test E, immediate */
				return take(c, op == 0xf6 ? 1 : c->wide16 ? 2 : 4, &out->imm);
			return (reg & 7) < 4; /* not, neg; the rest uses rdx */
		}
		return true;
	}
}

static bool prefixes(struct cursor *c, unsigned *op)
{
	for (;;) {
		if (c->at == c->end)
			return false;
		*op = *c->at++;
		if (*op == 0x66)
			c->wide16 = true;
		else if ((*op & 0xf0) == 0x40)
			c->rex = *op & 15;
		else if (*op != 0x2e && *op != 0x64 && *op != 0xf0 && *op != 0xf3)
			return true;
	}
}

static bool decode_short(struct cursor *c, unsigned op, struct insn *out)
{
	unsigned low = (op & 7) | (c->rex & 1) << 3;
	enum use use;
	int32_t ignored;

	if ((op & 0xf8) == 0x50) {
		out->reads = INSN_BIT(low) | INSN_BIT(RSP);
		out->sp_by = -8;
		return true;
	}
	if ((op & 0xf8) == 0x58) {
		out->writes = INSN_BIT(low);
		out->sp_by = 8;
		out->sp_unknown = low == RSP || c->wide16;
		return true;
	}
	if (op == 0xc9) {
		out->sp_from_rbp = true;
		out->sp_by = 8;
		return true;
	}
	if ((op & 0xf8) == 0xb8) {
		out->writes = c->wide16 ? 0 : INSN_BIT(low);
		return take(c, c->rex & 8 ? 8 : c->wide16 ? 2 : 4, &ignored);
	}
	if ((op & 0xf0) == 0x70 || op == 0xeb) {
		out->flow = op == 0xeb ? FLOW_JUMP : FLOW_BRANCH;
		return take(c, 1, &out->to);
	}
	if (op == 0xe8 || op == 0xe9) {
		out->flow = op == 0xe8 ? FLOW_CALL : FLOW_JUMP;
		return take(c, 4, &out->to);
	}
	if (op == 0xc3) {
		out->flow = FLOW_RETURN;
		return true;
	}
	/* al or eax with an immediate */
	if (op < 0x40 && (op & 6) == 4)
		return take(c, op & 1 ? (c->wide16 ? 2 : 4) : 1, &ignored);
	if (op == 0xa8 || op == 0xa9)
		return take(c, op & 1 ? (c->wide16 ? 2 : 4) : 1, &ignored);
	if (op == 0x90 && low == R8)
		return false; /* xchg r8, rax */
	use = use_of(op);
	if (use == UNKNOWN || use == NONE)
		return use == NONE;
	return operands(c, op, use, false, out);
}

static bool decode_long(struct cursor *c, struct insn *out)
{
	enum use use;
	unsigned op;

	if (c->at == c->end)
		return false;
	op = *c->at++;
	if (op == 0x05) {
		out->reads = SYSCALL_READS;
		return true;
	}
	if ((op & 0xf0) == 0x80) {
		out->flow = FLOW_BRANCH;
		return take(c, 4, &out->to);
	}
	use = use_of_long(op);
	return use != UNKNOWN && operands(c, op, use, true, out);
}

bool insn_decode(const uint8_t *code, size_t len, struct insn *out)
{
	struct cursor c = { .at = code, .end = code + len };
	unsigned op;

	memset(out, 0, sizeof(*out));
	out->base = -1;
	if (!prefixes(&c, &op))
		return false;
	if (op == 0x0f ? !decode_long(&c, out) : !decode_short(&c, op, out))
		return false;
	out->len = (size_t)(c.at - code);
	return true;
}
