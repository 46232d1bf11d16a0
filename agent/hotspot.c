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

static int read_word(pid_t pid, const struct module *mod, const char *symbol, uint64_t *out)
{
	struct symbol s;
	int err = module_symbol(mod, symbol, &s);

	return err ? -ENOENT : mem_read(pid, s.addr, out, sizeof(*out));
}

static int read_layout(pid_t pid, const struct module *mod, struct layout *l)
{
	const struct {
		const char *symbol;
		uint64_t *to;
	} words[] = {
		{ "gHotSpotVMStructs", &l->array },
		{ "gHotSpotVMStructEntryArrayStride", &l->stride },
		{ "gHotSpotVMStructEntryTypeNameOffset", &l->type },
		{ "gHotSpotVMStructEntryFieldNameOffset", &l->field },
		{ "gHotSpotVMStructEntryIsStaticOffset", &l->is_static },
		{ "gHotSpotVMStructEntryOffsetOffset", &l->offset },
		{ "gHotSpotVMStructEntryAddressOffset", &l->address },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int err = read_word(pid, mod, words[i].symbol, words[i].to);

		if (err)
			return err;
		if (i >= 2 && *words[i].to > l->stride - sizeof(uint64_t))
			return -EINVAL;
		if (i == 1 && (l->stride < sizeof(uint64_t) || l->stride > STRIDE_MAX))
			return -EINVAL;
	}
	return 0;
}

static uint64_t word_at(const unsigned char *entry, uint64_t offset)
{
	uint64_t v;

	memcpy(&v, entry + offset, sizeof(v));
	return v;
}

static void take_entry(pid_t pid, const struct layout *l, const unsigned char *entry,
		       const char *type, struct wanted *w)
{
	char field[NAME_MAX_];
	int32_t is_static;

	if (mem_read_str(pid, word_at(entry, l->field), field, sizeof(field)))
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
static void find_fields(pid_t pid, const struct layout *l, struct wanted *w)
{
	unsigned char entry[STRIDE_MAX];
	char type[NAME_MAX_] = "";
	uint64_t last = 0;

	for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
		uint64_t name;

		if (mem_read(pid, l->array + i * l->stride, entry, l->stride))
			return;
		name = word_at(entry, l->type);
		if (!name)
			return;
		if (name != last && mem_read_str(pid, name, type, sizeof(type)))
			type[0] = '\0'; /* a longer name is none of ours */
		last = name;
		if (is_wanted_type(w, type))
			take_entry(pid, l, entry, type, w);
	}
}

static void read_range(pid_t pid, uint64_t lo_at, uint64_t hi_at, uint64_t *lo, uint64_t *hi)
{
	if (mem_read(pid, lo_at, lo, sizeof(*lo)) || mem_read(pid, hi_at, hi, sizeof(*hi)) ||
	    *lo > *hi)
		*lo = *hi = 0;
}

static void read_heap(pid_t pid, const struct wanted *w, struct hotspot *out)
{
	uint64_t heap, region, words;

	if (mem_read(pid, w[HEAP].value, &heap, sizeof(heap)) || !heap)
		return;
	region = heap + w[RESERVED].value;
	read_range(pid, region + w[START].value, region + w[START].value, &out->heap_lo,
		   &out->heap_hi);
	if (mem_read(pid, region + w[WORDS].value, &words, sizeof(words)) ||
	    words > (UINT64_MAX - out->heap_lo) / 8)
		out->heap_lo = out->heap_hi = 0;
	else
		out->heap_hi = out->heap_lo + words * 8;
}

int hotspot_read(pid_t pid, const struct module *mod, struct hotspot *out)
{
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
	err = read_layout(pid, mod, &l);
	if (err)
		return err == -ENOENT ? err : 0;
	find_fields(pid, &l, w);
	if (w[LOW].found && w[HIGH].found)
		read_range(pid, w[LOW].value, w[HIGH].value, &out->code_lo, &out->code_hi);
	if (w[HEAP].found && w[RESERVED].found && w[START].found && w[WORDS].found)
		read_heap(pid, w, out);
	return 0;
}
