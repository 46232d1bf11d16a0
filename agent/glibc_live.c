// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_live.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "../inject/clock.h"

#define SPANS_MAX 16
#define PAGE_MASK ((uint64_t)4095)
#define LOOKS	  4U
#define NAP	  (5 * NS_PER_MS)

/* The module's writable data, its zeroed part included. */
static size_t data_spans(const struct module *mod, struct span *v)
{
	const struct elf_segment *seg;
	size_t n = mod->elf ? elf_file_segments(mod->elf, &seg) : 0, used = 0;

	for (size_t i = 0; i < n && used < SPANS_MAX; i++) {
		uint64_t start = mod->bias + seg[i].vaddr;

		if (seg[i].type != PT_LOAD || !(seg[i].flags & PF_W))
			continue;
		v[used].start = start & ~PAGE_MASK;
		v[used++].end = (start + seg[i].memsz + PAGE_MASK) & ~PAGE_MASK;
	}
	return used;
}

int glibc_live_lost(const struct process *p, struct diag *d)
{
	if (target_ending(&p->t, true))
		return target_gone(&p->t, d);
	return target_changed(&p->t, TARGET_IS_ANOTHER, d);
}

/* A program that has just begun has its libc mapped, but not made ready by ld.so. */
static int find_soon(const struct process *p, const struct allocator *a, struct glibc_live *out)
{
	int version = glibc_version_minor(a->version), rc;
	struct span spans[SPANS_MAX];
	size_t n = data_spans(a->mod, spans);
	const struct reader *r = peek_reader(out->peek);
	struct symbol sym;

	for (unsigned i = 0;; i++) {
		rc = glibc_find(r, spans, n, version, 0, &out->view);
		if (rc != -ENOENT || !a->owns_malloc || i == LOOKS)
			break;
		clock_sleep(NAP);
		r->refresh(r->ctx);
	}
	/* symbols are slow to look for: only where the shape was not found */
	if (rc == -ENOENT && module_symbol(a->mod, "main_arena", &sym) == 0)
		rc = glibc_find(r, spans, n, version, sym.addr, &out->view);
	return rc == -ENOENT && process_changed(p) ? -ESRCH : rc;
}

int glibc_live_open(const struct process *p, const struct allocator *a, struct glibc_live *out,
		    struct diag *d)
{
	int rc;

	*out = (struct glibc_live){ 0 };
	rc = peek_open(&p->t, &p->maps, &out->peek, d);
	if (rc)
		return rc == -ESRCH ? glibc_live_lost(p, d) : rc;
	rc = find_soon(p, a, out);
	if (rc)
		glibc_live_close(out);
	if (rc == -ESRCH)
		return glibc_live_lost(p, d);
	if (rc && rc != -ENOENT && rc != -ENODATA)
		return diag_internal(d, rc, "looking for the heap");
	return rc;
}

void glibc_live_close(struct glibc_live *l)
{
	peek_close(l->peek);
	l->peek = NULL;
}
