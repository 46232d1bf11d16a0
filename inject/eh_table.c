// SPDX-License-Identifier: GPL-3.0-or-later
#include "eh_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EH_FRAME_MAX ((uint64_t)64 * 1024 * 1024)
#define ENTRIES_MAX  ((uint64_t)8 * 1024 * 1024)
#define LEB_MAX	     10
/* Augmentation string and data, up to the encoding: "zPLRS" and a personality's address. */
#define CIE_LOOK ((size_t)128)
/* Overlays begin where no user address can be. */
#define OVERLAY_BASE 0xffff800000000000ULL

/* Pointer encodings of .eh_frame (LSB core, 10.5.1): value format, and what it is relative to. */
enum {
	PE_UDATA4 = 0x03,
	PE_SDATA4 = 0x0b,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
};

struct entry {
	int32_t func, fde;
};

/* .eh_frame_hdr: version, three encodings, address of .eh_frame, number of entries, entries. */
static int from_hdr(struct eh_table *t, const struct module *mod, struct pagecache *pages)
{
	struct {
		uint8_t version, frame_enc, count_enc, table_enc;
		int32_t frame;
		uint32_t count;
	} h;

	if (!mod->eh_frame_hdr || pagecache_read(pages, mod->eh_frame_hdr, &h, sizeof(h)))
		return -ENOENT;
	if (h.version != 1 || (h.frame_enc & 0x0f) != PE_SDATA4 || h.count_enc != PE_UDATA4 ||
	    h.table_enc != (PE_DATAREL | PE_SDATA4) || !h.count || h.count > ENTRIES_MAX ||
	    h.count > (mod->end - mod->eh_frame_hdr) / sizeof(struct entry))
		return -ENOENT;
	t->segbase = mod->eh_frame_hdr;
	t->entries = mod->eh_frame_hdr + sizeof(h);
	t->count = h.count;
	return 0;
}

/* ---- a table of our own, from the bytes of .eh_frame */

struct frame_bytes {
	const unsigned char *p;
	size_t len;
	uint64_t addr; /* of p[0] in the target */
};

/* Moves *at over a LEB128 number of at most 64 bits. */
static bool skip_leb(const struct frame_bytes *b, size_t *at, size_t end)
{
	for (unsigned n = 0; *at < end && n < LEB_MAX; n++)
		if (!(b->p[(*at)++] & 0x80))
			return true;
	return false;
}

static uint32_t get32(const struct frame_bytes *b, size_t at)
{
	uint32_t v;

	memcpy(&v, b->p + at, sizeof(v));
	return v;
}

/* The encoding of code addresses that a CIE's augmentation says; -1 if it is none that we read. */
static int cie_encoding(const struct frame_bytes *b, size_t cie)
{
	size_t at, end, aug;
	uint32_t len;

	if (cie > b->len || b->len - cie < 16)
		return -1;
	len = get32(b, cie);
	if (len > b->len - cie - 4 || len < 12 || get32(b, cie + 4))
		return -1;
	end = cie + 4 + len;
	aug = cie + 9;
	/* a bound that keeps the work for each of many entries with this CIE small */
	if (end - aug > CIE_LOOK)
		end = aug + CIE_LOOK;
	at = aug + strnlen((const char *)b->p + aug, end - aug) + 1;
	/* code and data alignment, return register, length of the augmentation */
	if (at >= end || b->p[aug] != 'z' || !skip_leb(b, &at, end) || !skip_leb(b, &at, end) ||
	    !skip_leb(b, &at, end) || !skip_leb(b, &at, end))
		return -1;
	for (aug++; b->p[aug]; aug++) {
		if (at >= end)
			return -1;
		if (b->p[aug] == 'R')
			return b->p[at];
		if (b->p[aug] == 'L')
			at++;
		else if (b->p[aug] == 'P')
			at += (b->p[at] & 0x0f) == PE_SDATA4 || (b->p[at] & 0x0f) == PE_UDATA4 ? 5
											       : 9;
		else if (b->p[aug] != 'S' && b->p[aug] != 'B')
			return -1;
	}
	return -1;
}

/* The function that the entry at `at` is for; false if it is a CIE or cannot be read. */
static bool fde_start(const struct frame_bytes *b, size_t at, uint64_t *start)
{
	uint32_t back = get32(b, at + 4);
	int enc;

	if (!back || back > at + 4)
		return false;
	enc = cie_encoding(b, at + 4 - back);
	if (enc == (PE_PCREL | PE_SDATA4))
		*start = b->addr + at + 8 + (uint64_t)(int64_t)(int32_t)get32(b, at + 8);
	else if (enc == PE_UDATA4)
		*start = get32(b, at + 8);
	else
		return false;
	return true;
}

static int by_func(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->func < y->func ? -1 : x->func > y->func;
}

/* Entries are at least 16 bytes long here, so there are no more than len/16. */
static size_t make_entries(const struct frame_bytes *b, const struct module *mod, struct entry *v,
			   size_t max)
{
	uint64_t start, base = mod->start;
	size_t at = 0, n = 0;
	uint32_t len;

	while (b->len - at >= 16 && n < max) {
		len = get32(b, at);
		if (!len) { /* the terminator of one input file's part */
			at += 4;
			continue;
		}
		if (len == UINT32_MAX || len > b->len - at - 4)
			break;
		if (len >= 12 && fde_start(b, at, &start) && start - base < INT32_MAX &&
		    b->addr + at - base < INT32_MAX)
			v[n++] = (struct entry){
				.func = (int32_t)(start - base),
				.fde = (int32_t)(b->addr + at - base),
			};
		at += 4 + (size_t)len;
	}
	qsort(v, n, sizeof(*v), by_func);
	return n;
}

static int from_frames(struct eh_table *t, const struct module *mod, struct pagecache *pages)
{
	struct frame_bytes b;
	unsigned char *bytes;
	uint64_t vaddr, size;
	struct entry *v;
	size_t n, max;
	int err;

	if (!mod->elf || elf_file_section(mod->elf, ".eh_frame", &vaddr, &size) || size < 16 ||
	    size > EH_FRAME_MAX)
		return -ENOENT;
	max = (size_t)size / 16;
	bytes = malloc((size_t)size);
	v = calloc(max, sizeof(*v));
	err = bytes && v ? elf_file_read(mod->elf, vaddr, bytes, (size_t)size) : -ENOMEM;
	if (!err) {
		b = (struct frame_bytes){ bytes, (size_t)size, vaddr + mod->bias };
		n = make_entries(&b, mod, v, max);
		t->segbase = mod->start;
		t->entries = OVERLAY_BASE + mod->start;
		t->count = n;
		err = n ? pagecache_overlay(pages, t->entries, v, n * sizeof(*v)) : -ENOENT;
	}
	free(bytes);
	if (err)
		free(v);
	else
		t->own = v;
	return err;
}

int eh_table_need(struct eh_table *t, const struct module *mod, struct pagecache *pages)
{
	if (t->state)
		return t->state > 0 ? 0 : -ENOENT;
	t->state = -1;
	if (from_hdr(t, mod, pages) && from_frames(t, mod, pages))
		return -ENOENT;
	t->state = 1;
	return 0;
}

void eh_table_free(struct eh_table *t)
{
	free(t->own);
	t->own = NULL;
}
