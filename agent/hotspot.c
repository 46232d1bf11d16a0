// SPDX-License-Identifier: GPL-3.0-or-later
#include "hotspot.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "../inject/mem.h"

#define ENTRIES_MAX 20000U
#define STRIDE_MAX  256U
#define NAME_MAX_   32U

/* The layout of one VMStructEntry, as libjvm says it. */
struct layout {
	uint64_t array, stride, type, field, is_static, offset, address;
};

/* A field that is looked for: its address if static, else its offset in the object. */
struct wanted {
	const char *type, *field;
	uint64_t value;
	bool found;
};

enum { LOW, HIGH, HEAP, RESERVED, START, WORDS, WANTED };

/* Where it is read: the process, its memory without a trace, and the library. */
struct source {
	pid_t pid;
	const struct reader *r;
	const struct module *mod;
};

/* A name, which is constant: from the file, so that no page of it is faulted in. */
static int read_name(const struct source *src, uint64_t addr, char buf[NAME_MAX_])
{
	size_t n = NAME_MAX_;
	int err;

	buf[0] = '\0';
	/* shorter, and shorter still, where the segment ends close behind it */
	do
		err = elf_file_read(src->mod->elf, addr - src->mod->bias, buf, n);
	while (err && (n /= 2));
	if (err)
		err = src->r->read(src->r->ctx, addr, buf, n = NAME_MAX_);
	return err || memchr(buf, '\0', n) ? err : -ENAMETOOLONG;
}

/*
 * What the program writes, at the latest when it is relocated: its page is there. What is read-only
 * once it is relocated the reader does not know.
 */
static int read_written(const struct source *src, uint64_t addr, void *out, size_t len)
{
	int err = src->r->read(src->r->ctx, addr, out, len);

	return err == -EFAULT ? mem_read(src->pid, addr, out, len) : err;
}

static int read_word(const struct source *src, uint64_t addr, uint64_t *out)
{
	return read_written(src, addr, out, sizeof(*out));
}

/*
 * A word of the layout: written when libjvm is initialised, or constant. A constant's page may
 * never have been touched in the process, and then reads as zeros: the file has it.
 */
static int read_layout_word(const struct source *src, const char *symbol, uint64_t *out)
{
	struct symbol s;
	int err;

	if (module_symbol(src->mod, symbol, &s))
		return -ENOENT;
	err = read_word(src, s.addr, out);
	if (err || *out)
		return err;
	return elf_file_read(src->mod->elf, s.addr - src->mod->bias, out, sizeof(*out));
}

static int read_layout(const struct source *src, struct layout *l)
{
	const struct {
		const char *symbol;
		uint64_t *to;
	} words[] = {
		{ "gHotSpotVMStructEntryArrayStride", &l->stride },
		{ "gHotSpotVMStructEntryTypeNameOffset", &l->type },
		{ "gHotSpotVMStructEntryFieldNameOffset", &l->field },
		{ "gHotSpotVMStructEntryIsStaticOffset", &l->is_static },
		{ "gHotSpotVMStructEntryOffsetOffset", &l->offset },
		{ "gHotSpotVMStructEntryAddressOffset", &l->address },
	};
	struct symbol array;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int err = read_layout_word(src, words[i].symbol, words[i].to);

		if (err)
			return err;
		if (i >= 1 && *words[i].to > l->stride - sizeof(uint64_t))
			return -EINVAL;
		if (i == 0 && (l->stride < sizeof(uint64_t) || l->stride > STRIDE_MAX))
			return -EINVAL;
	}
	if (module_symbol(src->mod, "gHotSpotVMStructs", &array))
		return -ENOENT;
	return read_word(src, array.addr, &l->array);
}

static uint64_t word_at(const unsigned char *entry, uint64_t offset)
{
	uint64_t v;

	memcpy(&v, entry + offset, sizeof(v));
	return v;
}

static void take_entry(const struct source *src, const struct layout *l, const unsigned char *entry,
		       const char *type, struct wanted *w)
{
	char field[NAME_MAX_];
	int32_t is_static;

	if (read_name(src, word_at(entry, l->field), field))
		return;
	memcpy(&is_static, entry + l->is_static, sizeof(is_static));
	for (size_t i = 0; i < WANTED; i++) {
		if (strcmp(w[i].type, type) != 0 || strcmp(w[i].field, field) != 0)
			continue;
		w[i].value = word_at(entry, is_static ? l->address : l->offset);
		w[i].found = true;
	}
}

static bool is_wanted_type(const struct wanted *w, const char *type)
{
	for (size_t i = 0; i < WANTED; i++)
		if (strcmp(w[i].type, type) == 0)
			return true;
	return false;
}

/* The array ends with an entry without a type. A type's entries mostly follow each other. */
static void find_fields(const struct source *src, const struct layout *l, struct wanted *w)
{
	unsigned char entry[STRIDE_MAX];
	char type[NAME_MAX_] = "";
	uint64_t last = 0;

	for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
		uint64_t name;

		if (read_written(src, l->array + i * l->stride, entry, l->stride))
			return;
		name = word_at(entry, l->type);
		if (!name)
			return;
		if (name != last && read_name(src, name, type))
			type[0] = '\0'; /* a longer name is none of ours */
		last = name;
		if (is_wanted_type(w, type))
			take_entry(src, l, entry, type, w);
	}
}

static void read_range(const struct source *src, uint64_t lo_at, uint64_t hi_at, uint64_t *lo,
		       uint64_t *hi)
{
	if (read_word(src, lo_at, lo) || read_word(src, hi_at, hi) || *lo > *hi)
		*lo = *hi = 0;
}

static void read_heap(const struct source *src, const struct wanted *w, struct hotspot *out)
{
	uint64_t heap, region, words;

	if (read_word(src, w[HEAP].value, &heap) || !heap)
		return;
	region = heap + w[RESERVED].value;
	read_range(src, region + w[START].value, region + w[START].value, &out->heap_lo,
		   &out->heap_hi);
	if (read_word(src, region + w[WORDS].value, &words) ||
	    words > (UINT64_MAX - out->heap_lo) / 8)
		out->heap_lo = out->heap_hi = 0;
	else
		out->heap_hi = out->heap_lo + words * 8;
}

int hotspot_read(pid_t pid, const struct reader *r, const struct module *mod, struct hotspot *out)
{
	const struct source src = { pid, r, mod };
	struct layout l;
	struct wanted w[WANTED] = {
		[LOW] = { .type = "CodeCache", .field = "_low_bound" },
		[HIGH] = { .type = "CodeCache", .field = "_high_bound" },
		[HEAP] = { .type = "Universe", .field = "_collectedHeap" },
		[RESERVED] = { .type = "CollectedHeap", .field = "_reserved" },
		[START] = { .type = "MemRegion", .field = "_start" },
		[WORDS] = { .type = "MemRegion", .field = "_word_size" },
	};
	int err;

	memset(out, 0, sizeof(*out));
	if (!mod->elf)
		return -ENOENT;
	err = read_layout(&src, &l);
	if (err)
		return err == -ENOENT ? err : 0;
	find_fields(&src, &l, w);
	if (w[LOW].found && w[HIGH].found)
		read_range(&src, w[LOW].value, w[HIGH].value, &out->code_lo, &out->code_hi);
	if (w[HEAP].found && w[RESERVED].found && w[START].found && w[WORDS].found)
		read_heap(&src, w, out);
	return 0;
}
