// SPDX-License-Identifier: GPL-3.0-or-later
#include "cfa.h"

#include <stdint.h>

struct bytes {
	const unsigned char *p;
	size_t left;
};

/* Operands, one letter each: u LEB128 number, 1 2 4 8 so many bytes, e block with an expression. */
static const struct {
	unsigned char first, last;
	const char *operands;
} instructions[] = {
	{ 0x00, 0x00, "" },   /* nop */
	{ 0x02, 0x02, "1" },  /* advance_loc1 */
	{ 0x03, 0x03, "2" },  /* advance_loc2 */
	{ 0x04, 0x04, "4" },  /* advance_loc4 */
	{ 0x05, 0x05, "uu" }, /* offset_extended */
	{ 0x06, 0x08, "u" },  /* restore_extended, undefined, same_value */
	{ 0x09, 0x09, "uu" }, /* register */
	{ 0x0a, 0x0b, "" },   /* remember_state, restore_state */
	{ 0x0c, 0x0c, "uu" }, /* def_cfa */
	{ 0x0d, 0x0e, "u" },  /* def_cfa_register, def_cfa_offset */
	{ 0x0f, 0x0f, "e" },  /* def_cfa_expression */
	{ 0x10, 0x10, "ue" }, /* expression */
	{ 0x11, 0x12, "uu" }, /* offset_extended_sf, def_cfa_sf */
	{ 0x13, 0x13, "u" },  /* def_cfa_offset_sf */
	{ 0x14, 0x15, "uu" }, /* val_offset, val_offset_sf */
	{ 0x16, 0x16, "ue" }, /* val_expression */
	{ 0x2e, 0x2e, "u" },  /* GNU_args_size */
	{ 0x40, 0x7f, "" },   /* advance_loc */
	{ 0x80, 0xbf, "u" },  /* offset */
	{ 0xc0, 0xff, "" },   /* restore */
}, operations[] = {
	{ 0x03, 0x03, "8" }, /* addr */
	{ 0x06, 0x06, "" },  /* deref */
	{ 0x08, 0x09, "1" }, { 0x0a, 0x0b, "2" }, { 0x0c, 0x0d, "4" }, { 0x0e, 0x0f, "8" }, /* const */
	{ 0x10, 0x11, "u" },  /* constu, consts */
	{ 0x12, 0x14, "" },   /* dup, drop, over */
	{ 0x15, 0x15, "1" },  /* pick */
	{ 0x16, 0x17, "" },   /* swap, rot */
	{ 0x19, 0x1a, "" },   /* abs, and */
	{ 0x1c, 0x1c, "" },   /* minus */
	{ 0x1e, 0x22, "" },   /* mul, neg, not, or, plus */
	{ 0x23, 0x23, "u" },  /* plus_uconst */
	{ 0x24, 0x27, "" },   /* shl, shr, shra, xor */
	{ 0x29, 0x2e, "" },   /* eq, ge, gt, le, lt, ne */
	{ 0x30, 0x6f, "" },   /* lit, reg */
	{ 0x70, 0x8f, "u" },  /* breg */
	{ 0x90, 0x90, "u" },  /* regx */
	{ 0x92, 0x92, "uu" }, /* bregx */
	{ 0x94, 0x94, "1" },  /* deref_size */
	{ 0x96, 0x96, "" },   /* nop */
};

static bool take_leb(struct bytes *b, uint64_t *v)
{
	unsigned shift = 0;

	*v = 0;
	while (b->left && shift < 64) {
		unsigned char c = *b->p++;

		b->left--;
		*v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
		shift += 7;
	}
	return false;
}

static bool skip(struct bytes *b, uint64_t n)
{
	if (n > b->left)
		return false;
	b->p += n;
	b->left -= (size_t)n;
	return true;
}

static bool expression_ok(struct bytes b);

static bool operands_ok(struct bytes *b, const char *operands)
{
	uint64_t n;

	for (; *operands; operands++) {
		if (*operands >= '1' && *operands <= '8') {
			if (!skip(b, (uint64_t)(*operands - '0')))
				return false;
			continue;
		}
		if (!take_leb(b, &n))
			return false;
		if (*operands != 'e')
			continue;
		if (n > b->left || !expression_ok((struct bytes){ b->p, (size_t)n }))
			return false;
		if (!skip(b, n))
			return false;
	}
	return true;
}

static bool expression_ok(struct bytes b)
{
	while (b.left) {
		unsigned char op = *b.p;
		size_t i, n = sizeof(operations) / sizeof(operations[0]);

		skip(&b, 1);
		for (i = 0; i < n && (op < operations[i].first || op > operations[i].last); i++)
			;
		if (i == n || !operands_ok(&b, operations[i].operands))
			return false;
	}
	return true;
}

bool cfa_program_ok(const unsigned char *p, size_t len)
{
	struct bytes b = { p, len };

	while (b.left) {
		unsigned char op = *b.p;
		size_t i, n = sizeof(instructions) / sizeof(instructions[0]);

		skip(&b, 1);
		for (i = 0; i < n && (op < instructions[i].first || op > instructions[i].last); i++)
			;
		if (i == n || !operands_ok(&b, instructions[i].operands))
			return false;
	}
	return true;
}
