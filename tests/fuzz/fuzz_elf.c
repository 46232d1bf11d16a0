// SPDX-License-Identifier: GPL-3.0-or-later
/* An ELF file of the target: segments, build id, symbols by name and all, dynamic strings. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/jemalloc_detect.h"
#include "../../inject/elf.h"
#include "../../inject/modules.h"
#include "../../inject/objfile.h"
#include "../../inject/preload.h"
#include "fuzz.h"

const char fuzz_name[] = "elf";

static int count_string(const char *s, void *arg)
{
	*(size_t *)arg += strlen(s);
	return 0;
}

static int count_symbol(const char *name, const struct elf_sym *s, void *arg)
{
	FUZZ_CHECK(name[0] && s->type != STT_FILE && s->type != STT_SECTION);
	*(size_t *)arg += strlen(name);
	return 0;
}

static void look_up(struct elf_file *e)
{
	static const char *const names[] = { "malloc",	"hidden", "main", "a_rather_long_name",
					     "mallctl", "" };
	struct elf_sym s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (elf_file_lookup_dynamic(e, names[i], &s) == 0)
			FUZZ_CHECK(s.dynamic && elf_file_lookup(e, names[i], &s) == 0);
		(void)!elf_file_lookup(e, names[i], &s);
	}
}

static void read_parts(struct elf_file *e)
{
	const struct elf_segment *seg;
	size_t n = elf_file_segments(e, &seg);
	uint64_t addr, len;
	char buf[64];

	for (size_t i = 0; i < n && i < 64; i++) {
		(void)!elf_file_read(e, seg[i].vaddr, buf, sizeof(buf));
		(void)!elf_file_read(e, seg[i].vaddr + seg[i].filesz - 32, buf, sizeof(buf));
	}
	if (elf_file_section(e, ".eh_frame", &addr, &len) == 0)
		(void)!elf_file_read(e, addr, buf, sizeof(buf));
}

static void use_as_module(struct elf_file *e)
{
	struct module mod = { .path = (char *)"x", .elf = e, .is_main = true };
	struct preload_entry entry[] = { { .name = (char *)"/lib/libx.so", .elf = e },
					 { .name = (char *)"/lib/liby.so.1" } };
	struct modules mods = { .v = &mod, .n = 1 };
	struct allocator_search search = { .budget = 1 << 20, .owner = &mod };
	struct allocator found[4] = { 0 };
	char text[16];
	uint64_t off;

	(void)!modules_glibc(&mods);
	modules_musl(&mods);
	(void)!modules_glibc_version(&mod, text, sizeof(text));
	FUZZ_CHECK(jemalloc_detect(NULL, &mod, &search, found, 4) <= 4);
	module_describe(&mod, 0x1000, text, sizeof(text), &off);
	(void)!preload_mark(e, entry, 2);
}

static int count_slot(uint64_t vaddr, void *arg)
{
	*(size_t *)arg += vaddr != 0;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned char *id;
	struct elf_file *e, *dbg;
	size_t sum = 0, slots = 1 << 20, len;
	int fd;

	if (elf_file_open(fuzz_file(data, size), &e))
		return 0;
	len = elf_file_build_id(e, &id);
	if (objfile_open_debug(fuzz_procfd(), id, len, &fd) == 0 && elf_file_open(fd, &dbg) == 0)
		elf_file_close(dbg);
	look_up(e);
	(void)!elf_file_each(e, count_symbol, &sum);
	(void)!elf_file_dynstr(e, DT_NEEDED, count_string, &sum);
	(void)!elf_file_dynstr(e, DT_SONAME, count_string, &sum);
	(void)!elf_file_slots(e, "malloc", &slots, count_slot, &sum);
	read_parts(e);
	use_as_module(e);
	if (elf_file_open(fuzz_file(data, size), &dbg) == 0) {
		if (elf_file_add_debug(e, dbg))
			elf_file_close(dbg);
		look_up(e);
	}
	elf_file_close(e);
	return 0;
}
