// SPDX-License-Identifier: GPL-3.0-or-later
#include "module_text.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP ((size_t)256 << 10)

static void copy_text(const char *from, const char *end, char *buf, size_t size)
{
	size_t n = strnlen(from, (size_t)(end - from));

	if (n >= size)
		n = size - 1;
	memcpy(buf, from, n);
	buf[n] = '\0';
}

/* Pieces overlap, so that a text on a border is whole in one of them. */
static int find_in(const struct module *mod, const struct elf_segment *seg, const char *needle,
		   char *piece, size_t *budget, char *buf, size_t size)
{
	for (uint64_t at = 0; at < seg->filesz && *budget; at += STEP - MODULE_TEXT_MAX) {
		size_t n = seg->filesz - at < STEP ? (size_t)(seg->filesz - at) : STEP;
		const char *hit;

		if (n > *budget)
			n = *budget;
		*budget -= n;
		if (elf_file_read(mod->elf, seg->vaddr + at, piece, n) < 0)
			return -ENOENT;
		hit = memmem(piece, n, needle, strlen(needle));
		if (!hit)
			continue;
		copy_text(hit + strlen(needle), piece + n, buf, size);
		return 0;
	}
	return -ENOENT;
}

int module_text_find(const struct module *mod, const char *needle, size_t *budget, char *buf,
		     size_t size)
{
	static const unsigned flags[] = { PF_R, PF_R | PF_X };
	const struct elf_segment *seg;
	int err = -ENOENT;
	char *piece;
	size_t n;

	if (!mod->elf)
		return -ENOENT;
	piece = malloc(STEP);
	if (!piece)
		return -ENOMEM;
	n = elf_file_segments(mod->elf, &seg);
	for (size_t k = 0; err && k < sizeof(flags) / sizeof(flags[0]); k++)
		for (size_t i = 0; err && i < n; i++)
			if (seg[i].type == PT_LOAD && seg[i].flags == flags[k])
				err = find_in(mod, &seg[i], needle, piece, budget, buf, size);
	free(piece);
	return err;
}
