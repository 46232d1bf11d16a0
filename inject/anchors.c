// SPDX-License-Identifier: GPL-3.0-or-later
#include "anchors.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64.h"
#include "cause.h"

/* glibc's thread descriptor, the dynamic thread vector and the surplus for dlopen lie on the stack
 * too. */
#define TLS_RESERVE ((size_t)64 * 1024)
#define TLS_MAX	    ((uint64_t)1 << 30) /* of one module; no stack holds more */
#define CHUNK	    ((size_t)4 * 1024)
/* Minor numbers of glibc 2: the end of a thread that has never allocated leaves an arena there. */
#define LEAVES_ARENA_FIRST 27
#define LEAVES_ARENA_LAST  33
/* Code of a large static program; a file may claim any size. */
#define CODE_MAX ((uint64_t)1 << 30)

/* Finds a byte pattern in executable segments of the file; *vaddr is where. */
static int find_bytes(const struct elf_file *e, const unsigned char *pat, size_t len, uint64_t from,
		      uint64_t to, uint64_t *budget, uint64_t *vaddr)
{
	unsigned char buf[CHUNK];

	while (from < to && to - from >= len && *budget) {
		size_t n = to - from < sizeof(buf) ? (size_t)(to - from) : sizeof(buf);
		const unsigned char *hit;

		*budget -= n < *budget ? n : *budget;
		if (elf_file_read(e, from, buf, n))
			return -ENOENT;
		hit = memmem(buf, n, pat, len);
		if (hit) {
			*vaddr = from + (uint64_t)(hit - buf);
			return 0;
		}
		from += n - (len - 1);
	}
	return -ENOENT;
}

/* The same within [from, to) of all executable segments. */
static int find_between(const struct elf_file *e, const unsigned char *pat, size_t len,
			uint64_t from, uint64_t to, uint64_t *vaddr)
{
	const struct elf_segment *seg;
	size_t n = elf_file_segments(e, &seg);
	uint64_t budget = CODE_MAX; /* over all segments: they may overlap */

	for (size_t i = 0; i < n; i++) {
		uint64_t lo = seg[i].vaddr, hi;

		if (seg[i].type != PT_LOAD || !(seg[i].flags & PF_X) ||
		    __builtin_add_overflow(lo, seg[i].filesz, &hi))
			continue;
		if (find_bytes(e, pat, len, lo > from ? lo : from, hi < to ? hi : to, &budget,
			       vaddr) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Near a function first (cheap), then in all code of the module. */
static int find_code(const struct module *mod, const char *near, uint64_t reach,
		     const unsigned char *pat, size_t len, uint64_t *addr)
{
	struct symbol sym;
	uint64_t vaddr;
	int rc = -ENOENT;

	if (module_symbol(mod, near, &sym) == 0) {
		uint64_t at = sym.addr - mod->bias;

		rc = find_between(mod->elf, pat, len, at > reach ? at - reach : 0,
				  at < UINT64_MAX - reach ? at + reach : UINT64_MAX, &vaddr);
	}
	if (rc)
		rc = find_between(mod->elf, pat, len, 0, UINT64_MAX, &vaddr);
	if (rc == 0)
		*addr = vaddr + mod->bias;
	return rc;
}

/* libc's own definition, not one that interposes it; before 2.34 the thread functions are in
 * libpthread. */
static uint64_t own_function(const struct modules *mods, const struct module *libc,
			     const char *name)
{
	struct symbol sym;

	if (module_symbol(libc, name, &sym) == 0 && sym.type == STT_FUNC)
		return sym.addr;
	for (size_t i = 0; i < mods->n; i++) {
		const char *base = strrchr(mods->v[i].path, '/');

		if (base && strncmp(base, "/libpthread", 11) == 0 &&
		    module_symbol(&mods->v[i], name, &sym) == 0 && sym.type == STT_FUNC)
			return sym.addr;
	}
	return 0;
}

/* Does the end of a proxy have to be taken care of (payload/arena.c)? Where the version is not
 * known, as in a static program, it does no harm. 2.26 leaves an arena of every thread. */
static bool leaves_arena(const struct module *libc)
{
	char version[32];
	long minor;

	if (modules_glibc_version(libc, version, sizeof(version)))
		return true;
	minor = strncmp(version, "2.", 2) == 0 ? strtol(version + 2, NULL, 10) : 0;
	return minor >= LEAVES_ARENA_FIRST && minor <= LEAVES_ARENA_LAST;
}

static void find_malloc(const struct modules *mods, const struct module *libc, struct anchors *out)
{
	struct symbol alloc, release;

	/* what frees a thread's last block is whatever a plain reference reaches */
	if (modules_symbol(mods, "malloc", &alloc) || modules_symbol(mods, "free", &release) ||
	    alloc.mod != libc || release.mod != libc || !leaves_arena(libc))
		return;
	out->malloc = alloc.addr;
	out->free = release.addr;
}

static size_t tls_size(const struct modules *mods)
{
	size_t sum = TLS_RESERVE;

	for (size_t i = 0; i < mods->n; i++) {
		const struct elf_segment *seg;
		size_t n = mods->v[i].elf ? elf_file_segments(mods->v[i].elf, &seg) : 0;

		for (size_t k = 0; k < n; k++)
			if (seg[k].type == PT_TLS)
				sum += (size_t)(seg[k].memsz < TLS_MAX ? seg[k].memsz : TLS_MAX) +
				       (size_t)(seg[k].align < TLS_MAX ? seg[k].align : TLS_MAX);
	}
	return sum;
}

int anchors_find(const struct modules *mods, struct anchors *out, struct diag *d)
{
	const struct module *libc = modules_glibc(mods);
	char path[256] = "";

	memset(out, 0, sizeof(*out));
	if (!libc || !libc->elf)
		return cause_fail(d, -EOPNOTSUPP, CAUSE_NO_LIBC,
				  "no glibc was found in the target");
	escape_copy(path, sizeof(path), libc->path, strlen(libc->path));
	if (find_code(libc, "sigaction", 8192, arch_trampoline, sizeof(arch_trampoline),
		      &out->trampoline) ||
	    find_code(libc, "getppid", 64, arch_syscall_ret, sizeof(arch_syscall_ret),
		      &out->syscall_ret))
		return cause_fail(d, -EOPNOTSUPP, CAUSE_NO_ANCHOR,
				  "%s holds no signal trampoline or bare system call", path);
	out->errno_location = own_function(mods, libc, "__errno_location");
	out->munmap = own_function(mods, libc, "munmap");
	if (!out->errno_location || !out->munmap)
		return cause_fail(d, -EOPNOTSUPP, CAUSE_NO_ANCHOR, "%s has no symbol %s", path,
				  out->munmap ? "__errno_location" : "munmap");
	out->attr_init = own_function(mods, libc, "pthread_attr_init");
	out->attr_setstack = own_function(mods, libc, "pthread_attr_setstack");
	out->attr_setdetachstate = own_function(mods, libc, "pthread_attr_setdetachstate");
	out->attr_destroy = own_function(mods, libc, "pthread_attr_destroy");
	out->create = own_function(mods, libc, "pthread_create");
	find_malloc(mods, libc, out);
	out->tls_size = tls_size(mods);
	return 0;
}

bool anchors_can_thread(const struct anchors *a)
{
	return a->attr_init && a->attr_setstack && a->attr_setdetachstate && a->attr_destroy &&
	       a->create;
}
