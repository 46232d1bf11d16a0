// SPDX-License-Identifier: GPL-3.0-or-later
#include "linkmap.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>

#include "mem.h"

#define ENTRIES_MAX    16384
#define NAMESPACES_MAX 64
#define DYNAMIC_MAX    ((uint64_t)64 * 1024)

/* struct r_debug as the debugger interface has it; the link to the next namespace follows where
 * r_version is 2 or more (glibc 2.35). */
struct debug_view {
	int32_t version, pad;
	uint64_t map, brk, state, ldbase;
};

int linkmap_find(pid_t pid, uint64_t dynamic, uint64_t size, uint64_t *r_debug)
{
	size_t i, n = (size_t)(size < DYNAMIC_MAX ? size : DYNAMIC_MAX) / sizeof(Elf64_Dyn);
	Elf64_Dyn *d;
	int err;

	if (!n)
		return -ENOENT;
	d = calloc(n, sizeof(*d));
	if (!d)
		return -ENOMEM;
	err = mem_read(pid, dynamic, d, n * sizeof(*d));
	if (!err) {
		err = -ENOENT;
		for (i = 0; i < n && d[i].d_tag != DT_NULL; i++)
			if (d[i].d_tag == DT_DEBUG) {
				*r_debug = d[i].d_un.d_ptr;
				err = 0;
				break;
			}
	}
	free(d);
	return err;
}

bool linkmap_is_changing(pid_t pid, uint64_t r_debug)
{
	struct debug_view dv;

	if (!r_debug)
		return true;
	if (mem_read(pid, r_debug, &dv, sizeof(dv)))
		return false;
	return !dv.map || (uint32_t)dv.state != RT_CONSISTENT;
}

static int append(struct linkmap *lm, size_t *cap, const struct linkmap_entry *e)
{
	struct linkmap_entry *v;

	if (lm->n == *cap) {
		*cap = *cap ? *cap * 2 : 64;
		v = realloc(lm->v, *cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		lm->v = v;
	}
	lm->v[lm->n++] = *e;
	return 0;
}

static int read_chain(pid_t pid, uint64_t at, unsigned ns, struct linkmap *lm, size_t *cap)
{
	uint64_t prev = 0;
	struct link_map m;
	int err;

	while (at && lm->n < ENTRIES_MAX) {
		struct linkmap_entry e = { .addr = at, .ns = ns };

		/* The back link tells a list that changed, or garbage, from a list. */
		if (mem_read(pid, at, &m, sizeof(m)) || (uint64_t)(uintptr_t)m.l_prev != prev)
			return 0;
		e.l_addr = m.l_addr;
		e.l_name = (uint64_t)(uintptr_t)m.l_name;
		e.l_ld = (uint64_t)(uintptr_t)m.l_ld;
		err = append(lm, cap, &e);
		if (err)
			return err;
		prev = at;
		at = (uint64_t)(uintptr_t)m.l_next;
	}
	return 0;
}

int linkmap_read(pid_t pid, uint64_t r_debug, struct linkmap *out)
{
	struct debug_view dv;
	size_t cap = 0;
	unsigned ns;
	int err = 0;

	*out = (struct linkmap){ 0 };
	for (ns = 0; r_debug && ns < NAMESPACES_MAX && !err; ns++) {
		if (mem_read(pid, r_debug, &dv, sizeof(dv)))
			break;
		err = read_chain(pid, dv.map, ns, out, &cap);
		if (dv.version < 2 ||
		    mem_read(pid, r_debug + sizeof(dv), &r_debug, sizeof(r_debug)))
			r_debug = 0;
	}
	if (!err && !out->n)
		err = -ENOENT;
	if (err)
		linkmap_free(out);
	return err;
}

void linkmap_free(struct linkmap *lm)
{
	free(lm->v);
	*lm = (struct linkmap){ 0 };
}
