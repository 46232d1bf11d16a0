// SPDX-License-Identifier: GPL-3.0-or-later
/* Kinds of code, and the table of unwind entries, from an ELF file of the target. */
#include <elf.h>
#include <stdlib.h>

#include "../../inject/codemap.h"
#include "../../inject/eh_table.h"
#include "../../inject/modules.h"
#include "fuzz.h"

const char fuzz_name[] = "codemap";

#define BIAS 0x10000000ULL

/* As modules_load would fill it. */
static void describe(struct elf_file *e, struct module *mod)
{
	const struct elf_segment *seg;
	size_t n = elf_file_segments(e, &seg);
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < n; i++) {
		if (seg[i].type != PT_LOAD || seg[i].memsz > 1 << 20 || seg[i].vaddr > 1 << 28)
			continue;
		lo = seg[i].vaddr < lo ? seg[i].vaddr : lo;
		hi = seg[i].vaddr + seg[i].memsz > hi ? seg[i].vaddr + seg[i].memsz : hi;
		if (!(seg[i].flags & PF_X))
			continue;
		mod->text_start = BIAS + seg[i].vaddr;
		mod->text_end = mod->text_start + seg[i].memsz;
	}
	*mod = (struct module){ .path = (char *)"/lib/libx.so",
				.bias = BIAS,
				.start = BIAS + (hi ? lo : 0),
				.end = BIAS + hi,
				.text_start = mod->text_start,
				.text_end = mod->text_end,
				.elf = e };
}

static void ask(const struct code_map *c, const struct module *mod)
{
	uint64_t lo, hi;

	code_map_span(c, &lo, &hi);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t at = mod->text_start + i * ((mod->text_end - mod->text_start) / 64 + 1);
		unsigned kind = code_map_kind(c, at);

		FUZZ_CHECK(!kind || (at >= lo && at < hi));
		FUZZ_CHECK((code_map_return(c, at) & ~kind) == 0);
	}
}

static void tables(const struct module *mod)
{
	struct eh_table t = { 0 };
	struct pagecache *pages;
	uint64_t last = 0;

	FUZZ_CHECK(pagecache_new(FUZZ_PID, &pages) == 0);
	if (eh_table_need(&t, mod, pages) == 0)
		for (uint64_t i = 0; i < t.count; i++) {
			int32_t entry[2];

			FUZZ_CHECK(pagecache_read(pages, t.entries + 8 * i, entry, 8) == 0);
			FUZZ_CHECK(!i || entry[0] >= (int32_t)last);
			last = (uint32_t)entry[0];
		}
	eh_table_free(&t);
	pagecache_free(pages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	unsigned role = (unsigned)fuzz_number(&in, 1), flags = role & 7;
	struct module mod = { 0 };
	struct modules mods = { .v = &mod, .n = 1, .base = 1, .link_order = role & 8 };
	struct code_map *c;
	struct elf_file *e;

	if (elf_file_open(fuzz_file(in.p, in.left), &e))
		return 0;
	describe(e, &mod);
	mod.is_main = flags & 1;
	mod.is_ldso = flags & 2;
	mod.has_interp = flags & 4;
	if (code_map_build(&mods, &c) == 0) {
		ask(c, &mod);
		code_map_free(c);
	}
	tables(&mod);
	elf_file_close(e);
	return 0;
}
