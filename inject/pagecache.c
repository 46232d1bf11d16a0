// SPDX-License-Identifier: GPL-3.0-or-later
#include "pagecache.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define PAGE	     4096ULL
#define SLOTS	     512U /* a power of two: 2 MiB */
#define WAYS	     4U
#define RANGES_MAX   1024
#define OVERLAYS_MAX 64

struct slot {
	uint64_t page; /* address; 1 if empty */
	uint64_t run;  /* in which it was read */
	bool constant;
	unsigned char bytes[PAGE];
};

struct range {
	uint64_t lo, hi;
	const struct elf_file *elf; /* may be NULL */
	uint64_t bias;
};

struct overlay {
	uint64_t at;
	const unsigned char *mem;
	size_t len;
};

struct pagecache {
	pid_t pid;
	uint64_t run, clock;
	struct range constant[RANGES_MAX];
	size_t n_constant;
	struct overlay overlay[OVERLAYS_MAX];
	size_t n_overlay;
	struct slot *last; /* most words come from the page that the one before came from */
	struct slot slots[SLOTS];
};

int pagecache_new(pid_t pid, struct pagecache **out)
{
	struct pagecache *p = calloc(1, sizeof(*p));
	size_t i;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->run = 1;
	for (i = 0; i < SLOTS; i++)
		p->slots[i].page = 1;
	*out = p;
	return 0;
}

void pagecache_free(struct pagecache *p)
{
	free(p);
}

int pagecache_constant(struct pagecache *p, uint64_t lo, uint64_t hi, const struct elf_file *elf,
		       uint64_t bias)
{
	if (p->n_constant == RANGES_MAX)
		return -ENOSPC;
	p->constant[p->n_constant++] = (struct range){
		.lo = lo,
		.hi = hi,
		.elf = elf,
		.bias = bias,
	};
	return 0;
}

int pagecache_overlay(struct pagecache *p, uint64_t at, const void *mem, size_t len)
{
	if (p->n_overlay == OVERLAYS_MAX)
		return -ENOSPC;
	p->overlay[p->n_overlay++] = (struct overlay){ .at = at, .mem = mem, .len = len };
	return 0;
}

void pagecache_next_run(struct pagecache *p)
{
	p->run++;
	p->last = NULL;
}

static const struct range *constant_range(const struct pagecache *p, uint64_t page)
{
	size_t i;

	for (i = 0; i < p->n_constant; i++)
		if (page >= p->constant[i].lo && page < p->constant[i].hi)
			return &p->constant[i];
	return NULL;
}

/*
 * From the file: all of the page, or its beginning where a segment ends in it; nobody has to do
 * with what is mapped behind that end. False where the page does not begin in a segment.
 */
static bool read_file(const struct range *r, uint64_t page, unsigned char bytes[PAGE])
{
	const struct elf_segment *seg;
	uint64_t vaddr = page - r->bias;
	size_t n = elf_file_segments(r->elf, &seg);

	for (size_t i = 0; i < n; i++) {
		uint64_t in = vaddr - seg[i].vaddr, len;

		if (seg[i].type != PT_LOAD || in >= seg[i].filesz)
			continue;
		len = seg[i].filesz - in < PAGE ? seg[i].filesz - in : PAGE;
		memset(bytes + len, 0, (size_t)(PAGE - len));
		return elf_file_read(r->elf, vaddr, bytes, (size_t)len) == 0;
	}
	return false;
}

/* Reads the page into a slot of its set: an empty or outdated one, else the next in turn. */
static int load(struct pagecache *p, uint64_t page, struct slot *set, struct slot **out)
{
	const struct range *r = constant_range(p, page);
	struct slot *s = NULL;
	unsigned i;
	int err = 0;

	for (i = 0; i < WAYS && !s; i++)
		if (set[i].page == 1 || (!set[i].constant && set[i].run != p->run))
			s = &set[i];
	if (!s)
		s = &set[p->clock++ % WAYS];
	s->page = 1;
	if (!r || !r->elf || !read_file(r, page, s->bytes))
		err = mem_read(p->pid, page, s->bytes, PAGE);
	if (err)
		return err;
	s->page = page;
	s->run = p->run;
	s->constant = r != NULL;
	*out = s;
	return 0;
}

static int find(struct pagecache *p, uint64_t page, struct slot **out)
{
	struct slot *set;
	unsigned i;
	int err;

	if (p->last && p->last->page == page) {
		*out = p->last;
		return 0;
	}
	/* the lower bits spread neighbours, the upper ones keep mappings apart */
	set = &p->slots[((page / PAGE) ^ (page >> 24)) % (SLOTS / WAYS) * WAYS];
	for (i = 0; i < WAYS; i++)
		if (set[i].page == page && (set[i].constant || set[i].run == p->run)) {
			*out = p->last = &set[i];
			return 0;
		}
	err = load(p, page, set, out);
	if (!err)
		p->last = *out;
	return err;
}

static bool from_overlay(const struct pagecache *p, uint64_t addr, void *buf, size_t len)
{
	size_t i;

	for (i = 0; i < p->n_overlay; i++) {
		const struct overlay *o = &p->overlay[i];

		if (addr - o->at < o->len && len <= o->len - (addr - o->at)) {
			memcpy(buf, o->mem + (addr - o->at), len);
			return true;
		}
	}
	return false;
}

int pagecache_read(struct pagecache *p, uint64_t addr, void *buf, size_t len)
{
	unsigned char *to = buf;
	struct slot *s;
	size_t in, now;
	int err;

	if (p->n_overlay && from_overlay(p, addr, buf, len))
		return 0;
	while (len) {
		in = (size_t)(addr % PAGE);
		now = len < PAGE - in ? len : (size_t)(PAGE - in);
		err = find(p, addr - in, &s);
		if (err)
			return err;
		memcpy(to, s->bytes + in, now);
		to += now;
		addr += now;
		len -= now;
	}
	return 0;
}

int pagecache_word(struct pagecache *p, uint64_t addr, uint64_t *val)
{
	return pagecache_read(p, addr, val, sizeof(*val));
}
