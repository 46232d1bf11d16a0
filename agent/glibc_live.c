// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_live.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define SPANS_MAX 16
#define PAGE_MASK ((uint64_t)4095)

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

int glibc_live_open(const struct process *p, const struct allocator *a, struct glibc_live *out,
		    struct diag *d)
{
	int version = glibc_version_minor(a->version);
	struct span spans[SPANS_MAX];
	size_t n = data_spans(a->mod, spans);
	struct symbol sym;
	int rc;

	*out = (struct glibc_live){ 0 };
	rc = peek_open(&p->t, &p->maps, &out->peek, d);
	if (rc)
		return rc == -ESRCH ? glibc_live_lost(p, d) : rc;
	rc = glibc_find(peek_reader(out->peek), spans, n, version, 0, &out->view);
	/* symbols are slow to look for: only where the shape was not found */
	if (rc == -ENOENT && module_symbol(a->mod, "main_arena", &sym) == 0)
		rc = glibc_find(peek_reader(out->peek), spans, n, version, sym.addr, &out->view);
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
