// SPDX-License-Identifier: GPL-3.0-or-later
#include "tls.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "mem.h"
#include "tcb.h"

#define VOTERS 64U /* threads that are asked which word it is */
#define WORDS  (TLS_BLOCK_MAX / sizeof(uint64_t))

#define DESC_MAX	 16384U /* struct rtld_global is 4 KiB */
#define CACHE_AFTER_USER 16U	/* there _dl_stack_cache is the list behind _dl_stack_user (2.34) */

#define LINK_MAP_WORDS	  160U /* struct link_map is 1.1 to 1.2 KiB */
#define TLS_OFFSET_BEHIND 5U

/* How libc describes a field of its own to debuggers (nptl_db): three 32-bit numbers. */
enum { DESC_BITS, DESC_COUNT, DESC_OFFSET, DESC_WORDS };

/* Before 2.34 threads have a library of their own, which describes itself in its .symtab only. */
static int find_desc(const struct modules *mods, const char *name, struct symbol *sym)
{
	struct symbol create;

	if (modules_symbol(mods, name, sym) == 0)
		return 0;
	if (modules_symbol(mods, "pthread_create", &create) || !create.mod)
		return -ENOENT;
	return module_symbol(create.mod, name, sym);
}

/* bits is the size of the field that we count on, 0 for a structure. */
static int read_desc(pid_t pid, const struct modules *mods, const char *name, uint32_t bits,
		     uint32_t *offset)
{
	uint32_t desc[DESC_WORDS];
	struct symbol sym;

	/* constants, which nobody but debuggers reads: a look at them in memory would bring their
	 * pages in */
	if (find_desc(mods, name, &sym))
		return -ENOENT;
	if ((!sym.mod || !sym.mod->elf ||
	     elf_file_read(sym.mod->elf, sym.addr - sym.mod->bias, desc, sizeof(desc))) &&
	    mem_read(pid, sym.addr, desc, sizeof(desc)))
		return -ENOENT;
	if ((bits && desc[DESC_BITS] != bits) || desc[DESC_OFFSET] >= DESC_MAX)
		return -ENOENT;
	*offset = desc[DESC_OFFSET];
	return 0;
}

static const struct elf_segment *find_tls(const struct module *mod)
{
	const struct elf_segment *seg;
	size_t n;

	if (!mod->elf)
		return NULL;
	n = elf_file_segments(mod->elf, &seg);
	for (size_t i = 0; i < n; i++) {
		if (seg[i].type == PT_TLS)
			return &seg[i];
	}
	return NULL;
}

/* Where main_arena can be: what is only read brings no page of a file in that nobody has used. */
static void find_writable(const struct module *mod, uint64_t *lo, uint64_t *hi)
{
	const struct elf_segment *seg;
	size_t n = elf_file_segments(mod->elf, &seg);

	*lo = *hi = 0;
	for (size_t i = 0; i < n; i++) {
		if (seg[i].type != PT_LOAD || !(seg[i].flags & PF_W))
			continue;
		if (*hi == 0)
			*lo = mod->bias + seg[i].vaddr;
		*hi = mod->bias + seg[i].vaddr + seg[i].memsz;
	}
}

/*
 * Where nothing describes the link map (no libpthread before 2.34): l_tls_offset stands behind what
 * PT_TLS says: where the initial image is, its length, the block's length and alignment, and the
 * offset of its first byte.
 */
static uint64_t find_block_off(pid_t pid, const struct module *libc, const struct elf_segment *tls)
{
	const uint64_t want[] = { libc->bias + tls->vaddr, tls->filesz, tls->memsz, tls->align };
	uint64_t map[LINK_MAP_WORDS];

	if (mem_read(pid, libc->link_map, map, sizeof(map)))
		return 0;
	for (size_t i = 0; i + TLS_OFFSET_BEHIND < LINK_MAP_WORDS; i++)
		if (memcmp(&map[i], want, sizeof(want)) == 0)
			return map[i + TLS_OFFSET_BEHIND];
	return 0;
}

/*
 * How far below the thread pointer the module's block begins (TLS variant II). For a static program
 * it follows from its own PT_TLS; else ld.so has chosen it and noted it in the link map
 * (l_tls_offset; -1 and -2 are its marks for "dynamic" and "none").
 */
static uint64_t read_block_off(pid_t pid, const struct modules *mods, const struct module *libc,
			       const struct elf_segment *tls)
{
	uint32_t field;
	uint64_t off = 0;

	if (libc->is_main) {
		uint64_t align = tls->align ? tls->align : 1;

		if (tls->memsz > TLS_BLOCK_MAX || align > 4096 || (align & (align - 1)))
			return 0;
		return (tls->memsz + align - 1) & ~(align - 1);
	}
	if (!libc->link_map)
		return 0;
	if (read_desc(pid, mods, "_thread_db_link_map_l_tls_offset", 64, &field))
		off = find_block_off(pid, libc, tls);
	else if (mem_read(pid, libc->link_map + field, &off, sizeof(off)))
		return 0;
	return off <= (uint64_t)1 << 30 ? off : 0;
}

/* In a static program, and before 2.34 in libpthread, the lists are variables of their own. */
static void read_own_lists(const struct modules *mods, struct tls_layout *out)
{
	static const char *const names[][3] = {
		{ "_dl_stack_user", "_dl_stack_used", "_dl_stack_cache" },
		{ "__stack_user", "stack_used", "stack_cache" },
	};
	struct symbol sym[3];

	if (modules_symbol(mods, "pthread_create", &sym[0]) || !sym[0].mod)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct module *mod = sym[0].mod;
		size_t found = 0;

		while (found < 3 && module_symbol(mod, names[i][found], &sym[found]) == 0)
			found++;
		sym[0].mod = mod;
		if (found < 3)
			continue;
		out->stack_list = sym[0].addr;
		out->stack_used = sym[1].addr;
		out->stack_cache = sym[2].addr;
		return;
	}
}

static void read_stack_list(pid_t pid, const struct modules *mods, struct tls_layout *out)
{
	struct symbol global;
	uint32_t field;

	if (read_desc(pid, mods, "_thread_db_pthread_list", 0, &out->link_offset))
		return;
	if (modules_symbol(mods, "_rtld_global", &global) ||
	    read_desc(pid, mods, "_thread_db_rtld_global__dl_stack_user", 0, &field)) {
		read_own_lists(mods, out);
		return;
	}
	out->stack_list = global.addr + field;
	out->stack_cache = out->stack_list + CACHE_AFTER_USER;
	if (read_desc(pid, mods, "_thread_db_rtld_global__dl_stack_used", 0, &field) == 0)
		out->stack_used = global.addr + field;
}

void tls_layout_read(pid_t pid, const struct modules *mods, struct tls_layout *out)
{
	const struct module *libc;
	const struct elf_segment *tls;

	memset(out, 0, sizeof(*out));
	out->tid_offset = TCB_TID_OFFSET;
	if (!mods)
		return;
	if (read_desc(pid, mods, "_thread_db_pthread_tid", 32, &out->tid_offset))
		out->tid_offset = TCB_TID_OFFSET;
	read_stack_list(pid, mods, out);
	libc = modules_glibc(mods);
	tls = libc ? find_tls(libc) : NULL;
	if (!tls)
		return;
	find_writable(libc, &out->rw_lo, &out->rw_hi);
	out->in_program = libc->is_main;
	out->lo = libc->start;
	out->hi = libc->end;
	out->block_off = read_block_off(pid, mods, libc, tls);
	out->block_len =
		(size_t)(tls->memsz < TLS_BLOCK_MAX ? tls->memsz : TLS_BLOCK_MAX) & ~(size_t)7;
	if (out->block_len > out->block_off)
		out->block_off = 0; /* would reach above the thread pointer */
}

/* A thread arena follows the heap_info of its first heap: 32 bytes, 48 since glibc 2.35. */
static bool is_thread_arena(uint64_t v, tls_read_fn read, void *ctx)
{
	/* heap_max_size: 64 MiB; with glibc.malloc.hugetlb 4 huge pages of 2 MiB or 1 GiB */
	static const uint64_t sizes[] = { (uint64_t)64 << 20, (uint64_t)8 << 20,
					  (uint64_t)4 << 30 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t heap = v & ~(sizes[i] - 1), owner;

		if (heap == 0 || v - heap < 0x20 || v - heap > 0x40 || v % 16)
			continue;
		if (read(ctx, heap, &owner, sizeof(owner)) == 0 && owner == v)
			return true;
	}
	return false;
}

bool tls_is_arena(uint64_t v, uint64_t rw_lo, uint64_t rw_hi, tls_read_fn read, void *ctx)
{
	/* offset of next in malloc_state: glibc 2.27 to 2.42, 2.17 to 2.26, 2.43 */
	static const uint64_t next_offsets[] = { 2160, 2152, 2072 };

	if (v == 0 || v % 8)
		return false;
	if (v < rw_lo || v >= rw_hi)
		return is_thread_arena(v, read, ctx);
	for (size_t i = 0; i < sizeof(next_offsets) / sizeof(next_offsets[0]); i++) {
		uint64_t next;

		if (read(ctx, v + next_offsets[i], &next, sizeof(next)))
			continue;
		if (next == v || is_thread_arena(next, read, ctx))
			return true;
	}
	return false;
}

/* The word with the most votes; -ENOENT for none or a tie. */
static int elect(const unsigned *votes, size_t n, size_t *winner)
{
	unsigned best = 0;
	bool tie = false;

	for (size_t w = 0; w < n; w++) {
		if (votes[w] > best) {
			best = votes[w];
			*winner = w;
			tie = false;
		} else if (best && votes[w] == best) {
			tie = true;
		}
	}
	return best && !tie ? 0 : -ENOENT;
}

int tls_arena_offset(const struct tls_layout *l, const uint64_t *tps, size_t n, tls_read_fn read,
		     void *ctx, uint64_t *out)
{
	unsigned votes[WORDS] = { 0 };
	size_t words = l->block_len / sizeof(uint64_t), winner = 0;
	unsigned asked = 0;

	if (!l->block_off || words == 0 || words > WORDS)
		return -ENOENT;
	for (size_t i = 0; i < n && asked < VOTERS; i++) {
		uint64_t block[WORDS];

		if (!tps[i] || read(ctx, tps[i] - l->block_off, block, words * sizeof(block[0])))
			continue;
		asked++;
		for (size_t w = 0; w < words; w++)
			votes[w] += tls_is_arena(block[w], l->rw_lo, l->rw_hi, read, ctx);
	}
	if (elect(votes, words, &winner))
		return -ENOENT;
	*out = l->block_off - winner * sizeof(uint64_t);
	return 0;
}
