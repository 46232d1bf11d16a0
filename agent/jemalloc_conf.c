// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_conf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/elf.h"
#include "advice.h"

#define STEP   ((uint64_t)1 << 20)
#define BUDGET ((uint64_t)256 << 20)

/* len counts the NUL: the string has to end there. Pieces overlap by that much. */
static bool segment_has(const struct module *mod, const struct elf_segment *seg, const char *word,
			size_t len, char *piece, uint64_t *budget)
{
	for (uint64_t at = 0; at < seg->filesz && *budget; at += STEP - len) {
		uint64_t n = seg->filesz - at < STEP ? seg->filesz - at : STEP;

		n = n < *budget ? n : *budget;
		*budget -= n;
		if (elf_file_read(mod->elf, seg->vaddr + at, piece, (size_t)n) < 0)
			return false;
		if (memmem(piece, (size_t)n, word, len))
			return true;
	}
	return false;
}

static bool file_has(const struct module *mod, const char *word)
{
	const struct elf_segment *seg;
	size_t n = elf_file_segments(mod->elf, &seg);
	char *piece = malloc(STEP);
	uint64_t budget = BUDGET;
	bool found = !piece;

	for (size_t i = 0; i < n && !found; i++)
		if (seg[i].type == PT_LOAD && !(seg[i].flags & PF_W))
			found = segment_has(mod, &seg[i], word, strlen(word) + 1, piece, &budget);
	free(piece);
	return found;
}

const char *jemalloc_conf_name(const struct allocator *a, char *buf, size_t size)
{
	advice_conf_name(a->prefix, buf, size);
	if (a->prefix[0] && a->mod->elf && !file_has(a->mod, buf))
		advice_conf_name("", buf, size);
	return buf;
}
