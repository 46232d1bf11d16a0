// SPDX-License-Identifier: GPL-3.0-or-later
#include "codemap_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "modules.h"

int code_text_read(struct code_text *t, const struct module *mod, uint64_t lo, uint64_t hi)
{
	size_t len = (size_t)(hi - lo);

	*t = (struct code_text){ .lo = lo, .hi = hi, .bytes = malloc(len) };
	if (!t->bytes)
		return -ENOMEM;
	if (elf_file_read(mod->elf, lo - mod->bias, t->bytes, len))
		code_text_free(t);
	return 0;
}

void code_text_free(struct code_text *t)
{
	free(t->bytes);
	t->bytes = NULL;
}

/* The bytes in front of addr, at least n of them, or NULL. */
static const unsigned char *before(const struct code_text *t, uint64_t addr, size_t n)
{
	if (!t->bytes || addr < t->lo || addr > t->hi || addr - t->lo < n)
		return NULL;
	return t->bytes + (addr - t->lo);
}

bool code_text_after_syscall(const struct code_text *t, uint64_t addr)
{
	const unsigned char *p = before(t, addr, 2);

	return p && p[-2] == 0x0f && p[-1] == 0x05;
}

/*
 * FF /2 is the indirect near call. The byte after FF has mode (2 bits), 2 (3 bits), register or
 * memory base (3 bits); base 4 means one more byte, mode 1 one byte of displacement, mode 2 four,
 * and so does mode 0 with base 5 (Intel SDM vol. 2, tables 2-2 and 2-3).
 */
static size_t indirect_call_len(const unsigned char *p, size_t max)
{
	unsigned mode, base;
	size_t len = 2;

	if (max < 2 || p[0] != 0xff || (p[1] & 0x38) != 0x10)
		return 0;
	mode = p[1] >> 6;
	base = p[1] & 7;
	if (mode == 3)
		return 2;
	if (base == 4) {
		if (max < 3)
			return 0;
		len++;
		if (mode == 0 && (p[2] & 7) == 5)
			len += 4;
	} else if (mode == 0 && base == 5) {
		len += 4;
	}
	len += mode == 1 ? 1 : mode == 2 ? 4 : 0;
	return len <= max ? len : 0;
}

bool code_text_after_call(const struct code_text *t, uint64_t addr)
{
	const unsigned char *p;
	size_t n;

	if (!t->bytes || addr < t->lo || addr > t->hi)
		return true;
	p = before(t, addr, 5);
	if (p && p[-5] == 0xe8)
		return true;
	for (n = 2; n <= 7; n++) {
		p = before(t, addr, n);
		if (p && indirect_call_len(p - n, n) == n)
			return true;
	}
	return false;
}

/* A call through a register, or one with a 32-bit displacement that is field. */
static bool calls_start(const unsigned char *p, size_t len, uint32_t field)
{
	uint32_t disp;

	if (p[1] >> 6 == 3)
		return true;
	if (len < 6 || !field)
		return false;
	memcpy(&disp, p + len - 4, sizeof(disp));
	return disp == field;
}

bool code_text_next_indirect(const struct code_text *t, uint64_t *at, uint64_t hi, uint32_t field,
			     uint64_t *call)
{
	const unsigned char *p;
	size_t len;

	if (!t->bytes)
		return false;
	if (*at < t->lo)
		*at = t->lo;
	if (hi > t->hi)
		hi = t->hi;
	for (; *at < hi; ++*at) {
		p = t->bytes + (*at - t->lo);
		len = indirect_call_len(p, (size_t)(hi - *at));
		if (!len || !calls_start(p, len, field))
			continue;
		*call = *at;
		*at += len;
		return true;
	}
	return false;
}

bool code_text_next_trampoline(const struct code_text *t, uint64_t *at, uint64_t hi,
			       uint64_t *found)
{
	static const unsigned char code[CODE_TRAMPOLINE_LEN] = { 0x48, 0xc7, 0xc0, 0x0f, 0,
								 0,    0,    0x0f, 0x05 };
	const unsigned char *p;

	if (!t->bytes || *at < t->lo || hi > t->hi || *at >= hi)
		return false;
	p = memmem(t->bytes + (*at - t->lo), (size_t)(hi - *at), code, sizeof(code));
	if (!p)
		return false;
	*found = t->lo + (uint64_t)(p - t->bytes);
	*at = *found + sizeof(code);
	return true;
}
