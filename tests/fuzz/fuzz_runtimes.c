// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What glibc, HotSpot and Go keep in a target's memory about their stacks and heaps. The input is
 * the address at which a library with their symbols is loaded (6 bytes), then memory.
 */
#include <stdlib.h>

#include "../../agent/golang.h"
#include "../../agent/hotspot.h"
#include "../../inject/mem.h"
#include "../../inject/stacks.h"
#include "fuzz.h"

const char fuzz_name[] = "runtimes";

#define CHUNKS 64

static const char *const names[] = {
	"gHotSpotVMStructs",
	"gHotSpotVMStructEntryArrayStride",
	"gHotSpotVMStructEntryTypeNameOffset",
	"gHotSpotVMStructEntryFieldNameOffset",
	"gHotSpotVMStructEntryIsStaticOffset",
	"gHotSpotVMStructEntryOffsetOffset",
	"gHotSpotVMStructEntryAddressOffset",
	"runtime.persistentChunks",
	"_rtld_global",
	"_thread_db_rtld_global__dl_stack_user",
	"_thread_db_rtld_global__dl_stack_used",
	"_thread_db_pthread_list",
	"_thread_db_pthread_tid",
	"gnu_get_libc_version",
	"malloc",
};

static void stacks(const struct modules *mods)
{
	struct target t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd(), .comm = "x" };
	const struct maps none = { 0 };
	struct stacks s;
	struct diag d;

	diag_clear(&d);
	if (stacks_read(&t, &none, mods, &s, &d)) {
		fuzz_diag(&d);
		return;
	}
	for (size_t i = 0; i < s.n; i++)
		FUZZ_CHECK(s.v[i].lo < s.v[i].hi && s.v[i].tid >= 0);
	stacks_free(&s);
}

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	return mem_read(FUZZ_PID, addr, buf, len);
}

static void refresh(void *ctx)
{
	(void)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct reader memory = { .read = read_memory, .refresh = refresh };
	static struct elf_file *e;
	struct fuzz_input in = { data, size };
	struct module mod = { .path = (char *)"x", .start = 4096, .end = 1 << 20 };
	struct modules mods = { .v = &mod, .n = 1, .base = 1, .link_order = true };
	uint64_t chunk[CHUNKS];
	struct hotspot h;

	if (!e)
		FUZZ_CHECK(elf_file_open(fuzz_library(names, sizeof(names) / sizeof(names[0])),
					 &e) == 0);
	mod.elf = e;
	mod.bias = fuzz_number(&in, 6);
	fuzz_memory(&in);
	if (hotspot_read(FUZZ_PID, &memory, &mod, &h) == 0)
		FUZZ_CHECK(h.heap_lo <= h.heap_hi && h.code_lo <= h.code_hi);
	FUZZ_CHECK(golang_chunks(&memory, &mod, chunk, CHUNKS) <= CHUNKS);
	stacks(&mods);
	return 0;
}
