// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Usage: make_seeds DIR ELF...
 *
 * Writes the seeds that are not text: DIR/NAME/SEED, in the form that target NAME reads.
 */
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../inject/payload/abi.h"

#define SEED_MAX 32768

static const char *dir;

struct seed {
	unsigned char b[SEED_MAX];
	size_t n;
};

static void die(const char *what)
{
	fprintf(stderr, "make_seeds: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(struct seed *s, const void *p, size_t n)
{
	if (n > SEED_MAX - s->n)
		die("a seed is too large");
	memcpy(s->b + s->n, p, n);
	s->n += n;
}

static void put_number(struct seed *s, uint64_t v, size_t bytes)
{
	put(s, &v, bytes);
}

/* A piece of memory, as fuzz_memory reads it. */
static void put_piece(struct seed *s, uint64_t addr, const void *p, size_t n)
{
	put_number(s, addr, 8);
	put_number(s, n, 2);
	put(s, p, n);
}

static void write_seed(const char *target, const char *name, const struct seed *s)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, target);
	if (mkdir(path, 0755) && errno != EEXIST)
		die(path);
	snprintf(path, sizeof(path), "%s/%s/%s", dir, target, name);
	f = fopen(path, "wb");
	if (!f || fwrite(s->b, 1, s->n, f) != s->n || fclose(f))
		die(path);
}

/* ---- ELF files, alone and in memory */

static void read_elf(const char *path, struct seed *s)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		die(path);
	s->n = fread(s->b, 1, SEED_MAX, f);
	fclose(f);
	if (s->n < sizeof(Elf64_Ehdr) || s->n == SEED_MAX)
		die(path);
}

static void codemap_seeds(const struct seed *elf, const char *name)
{
	static const unsigned roles[] = { 1, 8, 2 };
	char file[128];

	for (size_t i = 0; i < 3; i++) {
		struct seed s = { .n = 0 };

		put_number(&s, roles[i], 1);
		put(&s, elf->b, elf->n);
		snprintf(file, sizeof(file), "%s-%u", name, roles[i]);
		write_seed("codemap", file, &s);
	}
}

#define RDEBUG	0x7ffff0000000ULL
#define LINKMAP 0x7ffff0000100ULL

/* The lines of maps and the pieces of memory of an object that is mapped at bias. */
static void map_object(const struct seed *elf, uint64_t bias, const char *name, char *maps,
		       struct seed *memory, uint64_t *dynamic)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	memcpy(&eh, elf->b, sizeof(eh));
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		memcpy(&ph, elf->b + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_DYNAMIC)
			*dynamic = bias + ph.p_vaddr;
		if (ph.p_type != PT_LOAD)
			continue;
		sprintf(maps + strlen(maps), "%llx-%llx r%c%cp %llx 08:01 7 /lib/%s\n",
			(unsigned long long)(bias + (ph.p_vaddr & ~4095ULL)),
			(unsigned long long)(bias + ((ph.p_vaddr + ph.p_memsz + 4095) & ~4095ULL)),
			ph.p_flags & PF_W ? 'w' : '-', ph.p_flags & PF_X ? 'x' : '-',
			(unsigned long long)(ph.p_offset & ~4095ULL), name);
		put_piece(memory, bias + ph.p_vaddr, elf->b + ph.p_offset, ph.p_filesz);
	}
}

/* The program's DT_DEBUG, which ld.so fills in. */
static void put_debug(const struct seed *elf, uint64_t dynamic, uint64_t bias, struct seed *memory)
{
	uint64_t file = dynamic - bias;
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	memcpy(&eh, elf->b, sizeof(eh));
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		memcpy(&ph, elf->b + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type != PT_DYNAMIC)
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= ph.p_filesz;
		     at += sizeof(Elf64_Dyn)) {
			Elf64_Dyn d;

			memcpy(&d, elf->b + ph.p_offset + at, sizeof(d));
			if (d.d_tag != DT_DEBUG)
				continue;
			d.d_un.d_ptr = RDEBUG;
			put_piece(memory, bias + file + at, &d, sizeof(d));
		}
	}
}

static void put_link_map(struct seed *memory, const uint64_t *bias, const uint64_t *ld, size_t n)
{
	uint64_t debug[6] = { 1, LINKMAP, 0, 0, 0, 0 };

	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = LINKMAP + i * 64;
		uint64_t m[5] = { bias[i], 0, ld[i], i + 1 < n ? at + 64 : 0, i ? at - 64 : 0 };

		put_piece(memory, at, m, sizeof(m));
	}
	put_piece(memory, RDEBUG, debug, sizeof(debug));
}

static void modules_seed(const struct seed *prog, const struct seed *lib, const char *name)
{
	const uint64_t bias[2] = { 0x555555554000, 0x7ffff7c00000 };
	uint64_t ld[2] = { 0, 0 };
	static struct seed memory, s;
	char maps[2048] = "";
	Elf64_Ehdr eh;
	uint64_t base, aux[4] = { AT_PHDR, 0, AT_NULL, 0 };

	memory.n = s.n = 0;
	memcpy(&eh, prog->b, sizeof(eh));
	base = eh.e_type == ET_DYN ? bias[0] : 0;
	map_object(prog, base, "prog", maps, &memory, &ld[0]);
	if (lib)
		map_object(lib, bias[1], "libx.so.1", maps, &memory, &ld[1]);
	if (ld[0])
		put_debug(prog, ld[0], bias[0], &memory);
	put_link_map(&memory, bias, ld, lib ? 2 : 1);
	aux[1] = (base ? base : 0x400000) + eh.e_phoff;
	put_number(&s, strlen(maps), 2);
	put(&s, maps, strlen(maps));
	put_number(&s, sizeof(aux), 1);
	put(&s, aux, sizeof(aux));
	put(&s, memory.b, memory.n);
	write_seed("modules", name, &s);
}

/* ---- unwind tables */

#define TEXT  0x400100ULL
#define HDR   0x402000ULL
#define FRAME 0x402100ULL

/* One CIE, one entry with these instructions, a stack of return addresses into the same function.
 */
static void unwind_seed(const char *name, const char *aug, const unsigned char *code, size_t len)
{
	static const unsigned char cie_code[] = { 0x0c, 7, 8, 0x90, 1, 0, 0 };
	unsigned char cie[64] = { 0 }, fde[256] = { 0 }, hdr[20] = { 1, 0x1b, 3, 0x3b };
	size_t at = 9, cie_len, fde_len;
	uint64_t stack[32];
	struct seed s = { .n = 0 };
	int32_t v;

	cie[8] = 1;
	memcpy(cie + at, aug, strlen(aug) + 1);
	at += strlen(aug) + 1;
	memcpy(cie + at, "\x01\x78\x10\x01\x1b", 5);
	at += 5;
	memcpy(cie + at, cie_code, sizeof(cie_code));
	cie_len = (at + sizeof(cie_code) + 7) & ~(size_t)7;
	v = (int32_t)cie_len - 4;
	memcpy(cie, &v, 4);
	fde_len = (17 + len + 7) & ~(size_t)7;
	v = (int32_t)fde_len - 4;
	memcpy(fde, &v, 4);
	v = (int32_t)cie_len + 4;
	memcpy(fde + 4, &v, 4);
	v = (int32_t)(TEXT - (FRAME + cie_len + 8));
	memcpy(fde + 8, &v, 4);
	v = 0x1000;
	memcpy(fde + 12, &v, 4);
	memcpy(fde + 17, code, len);
	v = (int32_t)(FRAME - HDR - 4);
	memcpy(hdr + 4, &v, 4);
	hdr[8] = 1;
	v = (int32_t)(TEXT - HDR);
	memcpy(hdr + 12, &v, 4);
	v = (int32_t)(FRAME + cie_len - HDR);
	memcpy(hdr + 16, &v, 4);
	for (size_t i = 0; i < 32; i++)
		stack[i] = i < 12 ? TEXT + 16 * i + 8 : 0;
	put_number(&s, 0x180, 2); /* rip, rsp, rbp, rbx */
	put_number(&s, 0x100, 2);
	put_number(&s, 0x140, 2);
	put_number(&s, 3, 2);
	put_piece(&s, HDR, hdr, sizeof(hdr));
	put_piece(&s, FRAME, cie, cie_len);
	put_piece(&s, FRAME + cie_len, fde, fde_len);
	put_piece(&s, 0x7fff0100, stack, sizeof(stack));
	put_piece(&s, TEXT + 0x800, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	write_seed("unwind", name, &s);
}

static void unwind_seeds(void)
{
	/* DWARF 5, 6.4.2 (DW_CFA_*) and 7.7.1 (DW_OP_*) */
	static const unsigned char plain[] = { 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x0e, 8, 0x0b };
	static const unsigned char frame[] = { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 };
	static const unsigned char cfa_expr[] = { 0x0f, 2, 0x77, 16 };
	static const unsigned char outermost[] = { 0x07, 16 };
	static const unsigned char reg_expr[] = { 0x10, 3, 3, 0x77, 0, 0x06, 0x16, 6, 2, 0x77, 8 };
	static const unsigned char loop[] = { 0x0f, 5, 0x77, 8, 0x2f, 0xfb, 0xff };
	static const unsigned char arithmetic[] = { 0x0f, 16,	0x77, 16,   0x10, 3,
						    0x1e, 0x32, 0x12, 0x13, 0x24, 0x20,
						    0x1f, 0x13, 0x77, 0x10, 0x16, 0x13 };
	static const unsigned char divide[] = { 0x0f, 14, 0x0e, 0,    0,    0,	  0,	0,
						0,    0,  0x80, 0x09, 0xff, 0x1b, 0x77, 8 };

	unwind_seed("plain", "zR", plain, sizeof(plain));
	unwind_seed("frame", "zR", frame, sizeof(frame));
	unwind_seed("cfa-expression", "zR", cfa_expr, sizeof(cfa_expr));
	unwind_seed("register-expression", "zR", reg_expr, sizeof(reg_expr));
	unwind_seed("outermost", "zR", outermost, sizeof(outermost));
	unwind_seed("signal", "zRS", plain, sizeof(plain));
	unwind_seed("loop", "zR", loop, sizeof(loop));
	unwind_seed("arithmetic", "zR", arithmetic, sizeof(arithmetic));
	unwind_seed("division-overflow", "zR", divide, sizeof(divide));
}

/* ---- structures in memory */

static void memory_seeds(void)
{
	const uint64_t at = 0x7ffff0100000ULL, heap = 0x7fffe8000000ULL;
	struct seed s = { .n = 0 };
	uint64_t dynamic[4] = { DT_DEBUG, at + 64, 0, 0 }, debug[6] = { 2, at + 256, 0, 0, 0, 0 };
	uint64_t link[10] = { 0, 0, 1, at + 296, 0, 4, 0, 2, 0, at + 256 };
	uint64_t tcb[3] = { at + 1024, 0, at + 1024 }, arena = heap + 0x30, list = at + 1024 + 704;
	uint32_t tid = 7;

	put_number(&s, at, 6);
	put_number(&s, 0x2d0, 2);
	put_number(&s, 704, 2);
	put_piece(&s, at, dynamic, sizeof(dynamic));
	put_piece(&s, at + 64, debug, sizeof(debug));
	put_piece(&s, at + 256, link, sizeof(link));
	put_piece(&s, at + 1024, tcb, sizeof(tcb));
	put_piece(&s, at + 1024 + 0x2d0, &tid, 4);
	put_piece(&s, at + 2048, &arena, 8);
	put_piece(&s, heap, &arena, 8);
	put_piece(&s, at + 2160, &at, 8);
	write_seed("memory", "link-map", &s);
	s.n = 0;
	put_number(&s, at, 6);
	put_number(&s, 0x2d0, 2);
	put_number(&s, 704, 2);
	put_piece(&s, at, &list, 8);
	put_piece(&s, at + 1024, tcb, sizeof(tcb));
	put_piece(&s, at + 1024 + 0x2d0, &tid, 4);
	write_seed("memory", "listed", &s);
}

static void block_seeds(void)
{
	const uint64_t base = 0x600000000000ULL + (1ULL << 33);
	static struct hm_block b;
	struct seed s = { .n = 0 };
	char maps[256];

	b = (struct hm_block){ .magic = HM_BLOCK_MAGIC, .base = base, .boot_state = HM_BOOT_DONE };
	b.proxy_state = HM_PROXY_READY;
	b.fd_out = 5;
	b.fd_request_host = 4;
	b.fd_reply_host = 3;
	put(&s, (char *)&b + offsetof(struct hm_block, proxy_state), 72);
	write_seed("proxy", "ready", &s);
	b.proxy_state = HM_PROXY_FAILED;
	b.proxy_step = 2;
	b.proxy_errno = 12;
	s.n = 0;
	put(&s, (char *)&b + offsetof(struct hm_block, proxy_state), 72);
	write_seed("proxy", "failed", &s);
	b.proxy_errno = INT32_MIN;
	s.n = 0;
	put(&s, (char *)&b + offsetof(struct hm_block, proxy_state), 72);
	write_seed("proxy", "no-errno", &s);
	s.n = 0;
	snprintf(maps, sizeof(maps),
		 "%llx-%llx r-xp 00000000 00:00 0 [anon:heapmedic]\n"
		 "%llx-%llx rw-p 00000000 00:00 0 [anon:heapmedic]\n",
		 (unsigned long long)base, (unsigned long long)base + 4096,
		 (unsigned long long)base + 4096, (unsigned long long)base + 0x80000);
	put_number(&s, strlen(maps), 2);
	put(&s, maps, strlen(maps));
	put_piece(&s, base + 4096 + 65536, &b, 512);
	write_seed("leftover", "done", &s);
}

/* Symbol i of the library that fuzz_replies.c makes. */
#define SYMBOL(i) (0x300000000000ULL + 0x1000 * (i))

static void reply_seeds(void)
{
	/* which one, result, scratch memory */
	static const struct {
		const char *name;
		unsigned which, result, scratch;
	} calls[] = {
		{ "version", 0, 0, 64 },
		{ "decay", 1, 0, 64 },
		{ "write", 1 + 16, 0, 80 },
		{ "refused", 1 + 16, 14, 0 },
		{ "stats", 3, 0, 96 },
		{ "purge", 40, 0, 0 },
		{ "info", 32, 0, 0 },
		{ "malloc-stats", 33, 0, 0 },
		{ "print", 34, 0, 0 },
		{ "trim", 35, 1, 0 },
		{ "direct", 33 + 64, 0, 0 },
		{ "direct-print", 34 + 64, 0, 0 },
		{ "profiling", 48, 0, 96 },
		{ "profile", 56 + 64, 0, 0 },
		{ "arenas", 128, 0, 104 },
		{ "sweep", 129, 0, 104 },
		{ "sweep-arenas", 130, 0, 104 },
		{ "sweep-classes", 131, 0, 104 },
	};
	static const char words[] = "text\x1b of the allocator\n";
	static const char heap[] = "heap_v2/524288\n  t*: 1: 64 [0: 0]\n\nMAPPED_LIBRARIES:\n"
				   "300000000000-300000100000 r-xp 00000000 08:01 7 /lib/x\n";
	static unsigned char scratch[112], file[224];
	uint64_t v = SYMBOL(6), lost = 0, eight = 8;
	uint32_t magic = 0xfbad2087, fd = 2;

	v = SYMBOL(9);
	memcpy(scratch + 16, &v, 8);
	memcpy(scratch + 32, &eight, 8);
	/* three arenas, each of which is initialised */
	scratch[48] = 4;
	scratch[80] = 3;
	scratch[96] = 4;
	memcpy(file, &magic, 4);
	memcpy(file + 112, &fd, 4);
	memcpy(file + 136, &v, 8);
	memcpy(file + 216, &v, 8);
	v = SYMBOL(6);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const char *text = strcmp(calls[i].name, "profile") ? words : heap;
		struct seed s = { .n = 0 };

		put_number(&s, calls[i].which, 1);
		put_number(&s, strlen(text), 1);
		put(&s, text, strlen(text));
		for (size_t k = 0; k < 3; k++)
			put_number(&s, calls[i].result, 8);
		put_number(&s, calls[i].scratch, 2);
		put(&s, scratch, calls[i].scratch);
		put_piece(&s, SYMBOL(5), &v, 8);
		put_piece(&s, SYMBOL(6), file, sizeof(file));
		put_piece(&s, SYMBOL(9),
			  "\0\0\0\0"
			  "5.3.0-0-g12",
			  16);
		put_piece(&s, 0x600000011000 + offsetof(struct hm_block, out_lost), &lost, 8);
		write_seed("replies", calls[i].name, &s);
	}
}

static void thread_seeds(void)
{
	static const char maps[] = "400000-404000 r-xp 00000000 08:01 7 /bin/x\n"
				   "7ffff0000000-7ffff0040000 rw-p 00000000 00:00 0 \n"
				   "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n";
	static const char stat[] = "9 (a) b) S 1 9 9 0 -1 4194560 0 0 0 0 5 3 0 0 20 0 5 0 88123";
	static const char call[] = "7 0x1 0x1 0xffffffff 0x0 0x0 0x0 0x7ffff0020000 0x400123\n";
	const uint64_t sp = 0x7ffff0020000, tp = 0x7ffff003f000;
	const uint64_t tcb[3] = { tp, 0, tp };
	uint64_t stack[64] = { 0x400123, 0x46505853, 0x400456 };
	const uint32_t tid = 7;

	for (int i = 0; i < 2; i++) {
		struct seed s = { .n = 0 };

		put_number(&s, sizeof(maps) - 1, 2);
		put(&s, maps, sizeof(maps) - 1);
		put_number(&s, sizeof(stat) - 1, 1);
		put(&s, stat, sizeof(stat) - 1);
		put_number(&s, sizeof(call) - 1, 1);
		put(&s, call, sizeof(call) - 1);
		put_number(&s, i ? 0x7ffffffef000 : sp, 6);
		put_number(&s, 0x400123, 6);
		put_number(&s, i ? 0 : tp, 6);
		put_piece(&s, i ? 0x7ffffffef000 : sp, stack, sizeof(stack));
		put_piece(&s, tp, tcb, sizeof(tcb));
		put_piece(&s, tp + 0x2d0, &tid, 4);
		/* all pages of the stack are there */
		for (uint64_t at = sp + 4096; at < tp; at += 4096)
			put_piece(&s, at, stack + 32, 1);
		write_seed("threads", i ? "main" : "other", &s);
	}
}

/* The second half of stack_bounds' pair, and the lists of two threads. */
static void runtime_seeds(void)
{
	const uint64_t bias = 0x100000000000, global = bias + 0x1000 * 9, tcb = 0x7ffff003f000;
	const uint64_t array = bias + 0x40000, text = bias + 0x50000, link = tcb + 704;
	const uint64_t words[] = { array, 64, 0, 8, 24, 32, 40, bias + 0x60000 };
	const uint32_t desc[][3] = { { 0, 1, 0 }, { 0, 1, 16 }, { 128, 1, 704 }, { 32, 1, 0x2d0 } };
	static const char *const types[] = { "CodeCache",     "CodeCache", "Universe",
					     "CollectedHeap", "MemRegion", "MemRegion" };
	static const char *const fields[] = { "_low_bound", "_high_bound", "_collectedHeap",
					      "_reserved",  "_start",	   "_word_size" };
	uint64_t list[4] = { link, link, global, global };
	uint64_t block[100] = { tcb, 0, tcb };
	struct seed s = { .n = 0 };
	uint32_t tid = 9;

	put_number(&s, bias, 6);
	for (size_t i = 0; i < 8; i++)
		put_piece(&s, bias + 0x1000 * (i + 1), &words[i], 8);
	put_piece(&s, global, list, sizeof(list));
	for (size_t i = 0; i < 4; i++)
		put_piece(&s, bias + 0x1000 * (10 + i), desc[i], 12);
	block[88] = block[89] = global;
	block[96] = tcb + 4096 - 0x40000;
	block[97] = 0x40000;
	put_piece(&s, tcb, block, sizeof(block));
	put_piece(&s, tcb + 0x2d0, &tid, 4);
	for (uint64_t i = 0; i < 6; i++) {
		uint64_t entry[8] = { text + i * 64, text + i * 64 + 32, 0,
				      i < 3,	     8 * (i - 3),	 bias + 0x70000 + 8 * i };

		put_piece(&s, array + 64 * i, entry, sizeof(entry));
		put_piece(&s, text + i * 64, types[i], strlen(types[i]));
		put_piece(&s, text + i * 64 + 32, fields[i], strlen(fields[i]));
	}
	block[0] = bias + 0x71000;
	put_piece(&s, bias + 0x60000, block, 8);
	put_piece(&s, bias + 0x70000, words, 24);
	put_piece(&s, bias + 0x71000, words, 40);
	write_seed("runtimes", "all", &s);
}

static void owner_seeds(void)
{
	static const char smaps[] =
		"7fffe8000000-7fffe8021000 rw-p 00000000 00:00 0 \n"
		"Size:                132 kB\nKernelPageSize:        4 kB\nRss:                  "
		"16 kB\n"
		"Swap:                  4 kB\nLocked:                8 kB\nVmFlags: rd wr mr lo \n"
		"7fffe8021000-7fffec000000 ---p 00000000 00:00 0 \nRss: 0 kB\n"
		"7ffff0000000-7ffff0040000 r-xp 00000000 08:01 7 /lib/libx.so\n"
		"Rss:                 100 kB\nAnonymous:           12 kB\nAnonHugePages: 0 kB\n"
		"7ffff0040000-7ffff0050000 rw-s 00000000 00:1a 8 /dev/shm/a (deleted)\nRss: 4 kB\n";
	static const char mounts[] = "35 24 0:26 / /x rw - tmpfs tmpfs rw\n";
	const uint64_t heap[4] = { 0x7fffe8000030, 0, 0x21000, 0x21000 };

	for (unsigned facts = 0; facts < 64; facts += 21) {
		struct seed s = { .n = 0 };

		put_number(&s, sizeof(smaps) - 1, 2);
		put(&s, smaps, sizeof(smaps) - 1);
		put_number(&s, sizeof(mounts) - 1, 2);
		put(&s, mounts, sizeof(mounts) - 1);
		put_number(&s, facts, 1);
		put_number(&s, 1, 1);
		put_number(&s, 0x7fffe801000, 6);
		put_number(&s, 1, 1);
		put_number(&s, 0x200, 6);
		put_number(&s, facts, 1);
		put_piece(&s, 0x7fffe8000000, heap, sizeof(heap));
		write_seed("owners",
			   facts == 0	 ? "none"
			   : facts == 21 ? "some"
			   : facts == 42 ? "other"
					 : "all",
			   &s);
	}
}

/* ---- a heap: our own */

#define HEAP_LEN ((size_t)16 * 1024)
#define BLOCKS	 32

/* Free chunks of many sizes: in a thread cache, in fastbins, sorted, and unsorted. */
static void use_heap(void)
{
	void *block[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = malloc(i % 8 == 7 ? 1100 + i * 8 : i % 6 ? 24 + i % 2 * 16 : 300);
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % 4 != 2)
			free(block[i]);
	block[0] = malloc(1200);
	block[1] = malloc(24);
	free(block[0]);
}

static void put_own(struct seed *s, uint64_t at, size_t len)
{
	put_piece(s, at, (const void *)(uintptr_t)at, len);
}

/* libc's data and the begin of the heap, as they are now. */
static void heap_seeds(void)
{
	struct seed s = { .n = 0 };
	char line[512];
	FILE *maps;

	use_heap();
	maps = fopen("/proc/self/maps", "r");
	if (!maps)
		die("/proc/self/maps");
	put_number(&s, 36, 1);
	put_number(&s, 0, 2);
	for (int pass = 0; pass < 2; pass++) {
		rewind(maps);
		while (fgets(line, sizeof(line), maps)) {
			unsigned long long lo, hi;
			size_t len;

			if (sscanf(line, "%llx-%llx", &lo, &hi) != 2 || !strstr(line, " rw-p "))
				continue;
			if (!strstr(line, pass ? "[heap]" : "libc.so.6") &&
			    !strstr(line, pass ? "[heap]" : "libc-2."))
				continue;
			len = hi - lo < HEAP_LEN ? (size_t)(hi - lo) : HEAP_LEN;
			if (len <= SEED_MAX - s.n - 10)
				put_own(&s, lo, len);
			/* the rest of the heap is there, and zero */
			for (lo += len; pass && lo < hi && hi - lo < 256 * 1024; lo += 4096)
				put_piece(&s, lo, "", 1);
		}
	}
	fclose(maps);
	write_seed("heap", "own", &s);
}

static void seccomp_seeds(void)
{
	static const struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xc000003e, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct seed s = { .n = 0 };

	put_number(&s, 9, 2);
	put(&s, f, sizeof(f));
	write_seed("seccomp", "filter", &s);
}

/* RFC 1952, bit by bit. */
static uint32_t crc_of(const char *p, size_t n)
{
	uint32_t crc = ~0U;

	for (; n; n--) {
		crc ^= (unsigned char)*p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
	}
	return ~crc;
}

/* The smallest snapshot, in one block that is not compressed. */
static void snapshot_seed(void)
{
	static const char text[] =
		"{\"schema\":\"heapmedic-snapshot/1\",\"snapshot\":{"
		"\"time\":\"2026-01-31T12:00:00.000000000Z\",\"pid\":1,\"comm\":\"x\","
		"\"look\":{\"memory\":{\"mappings\":[],\"pieces\":[],\"usage\":{\"rss\":0}},"
		"\"facts\":{},\"verdict\":\"healthy\"}}}";
	static const unsigned char head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1 };
	const size_t n = sizeof(text) - 1;
	struct seed s = { .n = 0 };

	put(&s, head, sizeof(head));
	put_number(&s, n, 2);
	put_number(&s, ~n, 2);
	put(&s, text, n);
	put_number(&s, crc_of(text, n), 4);
	put_number(&s, n, 4);
	write_seed("snapshot", "stored", &s);
}

int main(int argc, char **argv)
{
	static struct seed elf[8], *prog, *lib, *fixed;

	if (argc < 2 || argc - 2 > 8)
		return 2;
	dir = argv[1];
	heap_seeds();
	for (int i = 2; i < argc; i++) {
		const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
		struct seed *s = &elf[i - 2];

		read_elf(argv[i], s);
		codemap_seeds(s, name);
		prog = strcmp(name, "prog") ? prog : s;
		lib = strcmp(name, "lib") ? lib : s;
		fixed = strcmp(name, "static") ? fixed : s;
	}
	if (prog && lib)
		modules_seed(prog, lib, "prog-lib");
	if (fixed)
		modules_seed(fixed, NULL, "static");
	if (lib)
		modules_seed(lib, NULL, "lib");
	unwind_seeds();
	memory_seeds();
	block_seeds();
	reply_seeds();
	thread_seeds();
	runtime_seeds();
	owner_seeds();
	seccomp_seeds();
	snapshot_seed();
	return 0;
}
