// SPDX-License-Identifier: GPL-3.0-or-later
#include "own.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "heap.h"
#include "program.h"

/* malloc_info prints one element a line. */
struct reading {
	struct own *own;
	struct own_arena *heap; /* the one that it is in; NULL: behind the last */
	unsigned long long rest_count;
};

/*
 * The one place where malloc_info is not exact: it adds the size fields of free chunks as they are,
 * with their flags. Each free chunk has a neighbour in use before it (1). In thread arenas it also
 * carries their mark (4), unless it was split off another one. Top is counted without flags.
 */
static void end_heap(struct reading *r)
{
	const unsigned long long n = r->rest_count - 1;
	bool thread = r->heap != r->own->heap;

	r->heap->most += r->heap->fast - n;
	r->heap->least = r->heap->most - (thread ? 4 * n : 0);
	r->heap = NULL;
}

static void begin_heap(struct reading *r)
{
	cr_assert_lt(r->own->arenas, OWN_ARENAS);
	r->heap = &r->own->heap[r->own->arenas++];
	*r->heap = (struct own_arena){ 0 };
}

static void take_line(struct reading *r, const char *line)
{
	unsigned long long count, size;

	if (!strncmp(line, "<heap ", 6)) {
		begin_heap(r);
	} else if (!strncmp(line, "</heap>", 7)) {
		end_heap(r);
	} else if (!r->heap) {
		if (sscanf(line, "<total type=\"mmap\" count=\"%llu\" size=\"%llu\"", &count,
			   &size) == 2) {
			r->own->info_blocks = count;
			r->own->info_mapped = size;
		}
	} else if (sscanf(line, "<total type=\"fast\" count=\"%llu\" size=\"%llu\"", &count,
			  &size) == 2) {
		r->heap->fast = size;
	} else if (sscanf(line, "<total type=\"rest\" count=\"%llu\" size=\"%llu\"", &count,
			  &size) == 2) {
		r->rest_count = count;
		r->heap->most = size;
	} else if (sscanf(line, "<system type=\"current\" size=\"%llu\"", &size) == 1) {
		r->heap->system = size;
	}
}

static void read_info(struct own *own, pid_t pid, int fd)
{
	struct reading r = { .own = own };
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	f = fopen(path, "re");
	cr_assert_not_null(f, "%s", path);
	while (fgets(line, sizeof(line), f))
		take_line(&r, line);
	fclose(f);
	cr_assert_gt(own->arenas, 0, "malloc_info has said nothing");
	cr_assert_null(r.heap, "malloc_info has been cut");
}

void own_read(struct victim *v, struct own *o)
{
	char says[256];
	int fd;

	memset(o, 0, sizeof(*o));
	victim_report(v, says, sizeof(says));
	cr_assert_geq(sscanf(says, "%d %d %llu %llu %llu %llu %llu %llu %llu", &o->bits, &fd,
			     &o->arena, &o->used, &o->free, &o->mapped, &o->blocks, &o->top,
			     &o->cached),
		      8, "it says: %s", says);
	read_info(o, v->pid, fd);
}

/* got is ours and whole, want may have wrapped. */
static void same(const struct own *own, const char *what, long long got, unsigned long long want)
{
	unsigned long long mask = own->bits == 32 ? UINT32_MAX : UINT64_MAX;

	cr_assert_eq((unsigned long long)got & mask, want,
		     "%s: %lld, mallinfo says %llu of %d bits", what, got, want, own->bits);
}

void own_check_arenas(const struct own *own, json_t *o)
{
	heap_check_rows(o);
	same(own, "system", json_int(o, "result.total.system"), own->arena);
	same(own, "in use", json_int(o, "result.total.in_use"), own->used);
	same(own, "free", json_int(o, "result.total.free"), own->free);
	same(own, "mmapped", json_int(o, "result.parameters.mmapped"), own->mapped);
	same(own, "mmapped chunks", json_int(o, "result.parameters.mmapped_count"), own->blocks);
	same(own, "top of the main arena", json_int(heap_arena(o, 0), "top"), own->top);
	cr_assert_eq(json_int(o, "result.total.arenas"), (long long)own->arenas);
	for (size_t i = 0; i < own->arenas; i++) {
		json_t *row = heap_arena(o, (long long)i);
		const struct own_arena *want = &own->heap[i];
		unsigned long long is_free;

		cr_assert_not_null(row, "arena %zu", i);
		cr_assert_eq((unsigned long long)json_int(row, "system"), want->system,
			     "arena %zu: %lld of the system, malloc_info says %llu", i,
			     json_int(row, "system"), want->system);
		is_free = (unsigned long long)json_int(row, "free");
		cr_assert(is_free >= want->least && is_free <= want->most && is_free % 16 == 0,
			  "arena %zu: %llu free, malloc_info says %llu to %llu", i, is_free,
			  want->least, want->most);
	}
	cr_assert_eq((unsigned long long)json_int(o, "result.parameters.mmapped"),
		     own->info_mapped);
	cr_assert_eq((unsigned long long)json_int(o, "result.parameters.mmapped_count"),
		     own->info_blocks);
}

void own_check_facts(const struct own *own, json_t *o)
{
	unsigned long long system = 0;

	for (size_t i = 0; i < own->arenas; i++)
		system += own->heap[i].system;
	same(own, "glibc.system", heap_fact_int(o, "glibc.system"), own->arena);
	same(own, "glibc.in_use", heap_fact_int(o, "glibc.in_use"), own->used);
	same(own, "glibc.free", heap_fact_int(o, "glibc.free"), own->free);
	same(own, "glibc.mmapped", heap_fact_int(o, "glibc.mmapped"), own->mapped);
	cr_assert_eq((unsigned long long)heap_fact_int(o, "glibc.system"), system);
	cr_assert_eq((unsigned long long)heap_fact_int(o, "glibc.mmapped"), own->info_mapped);
	cr_assert_eq((unsigned long long)heap_fact_int(o, "glibc.arenas"), own->arenas);
}

/*
 * Every mmapped chunk is found in the maps, and no other mapping is taken for one. Since 2.43 glibc
 * counts 16 bytes more for each time that one was moved (realloc(3)).
 */
static void check_maps(const struct own *own, json_t *o, int minor)
{
	unsigned long long bytes = 0, count = 0, more;
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.rows"), i, row)
	{
		if (strcmp(json_text(row, "owner"), "glibc-mmapped") != 0)
			continue;
		bytes += (unsigned long long)json_int(row, "mapped_bytes");
		count += (unsigned long long)json_int(row, "count");
	}
	more = own->info_mapped - bytes;
	cr_assert_eq(count, own->info_blocks, "%llu mmapped chunks, not %llu", count,
		     own->info_blocks);
	cr_assert(more == 0 || ((minor >= 43 || !minor) && more % 16 == 0 && more < 4096),
		  "%llu bytes of mmapped chunks, not %llu", bytes, own->info_mapped);
}

void own_check(struct victim *v)
{
	static struct own own;
	json_t *o;

	own_read(v, &own);
	o = heap_ask(v->pid, "arenas", NULL);
	own_check_arenas(&own, o);
	json_decref(o);
	o = heap_ask(v->pid, "facts", NULL);
	cr_assert(!json_warned(o, "moving") && !json_warned(o, "partial") &&
		  !json_warned(o, "damaged-heap"));
	own_check_facts(&own, o);
	json_decref(o);
	o = heap_ask(v->pid, "maps", NULL);
	check_maps(&own, o, heap_glibc(v->pid));
	json_decref(o);
}

void own_check_caches(struct victim *v, long long each)
{
	static struct own own;
	json_t *list = heap_ask(v->pid, "threads", NULL), *facts = heap_ask(v->pid, "facts", NULL);
	json_t *row;
	long long sum = 0;
	size_t i;

	own_read(v, &own);
	json_array_foreach(json_at(list, "result.threads"), i, row)
	{
		long long bytes = json_int(row, "tcache_bytes");

		cr_assert(each < 0 || bytes == each, "%s has %lld, not %lld",
			  json_text(row, "name"), bytes, each);
		sum += bytes;
	}
	cr_assert_eq(sum, (long long)own.cached, "%lld in all caches, the victim says %llu", sum,
		     own.cached);
	cr_assert_eq(heap_fact_int(facts, "glibc.tcache"), sum);
	json_decref(list);
	json_decref(facts);
}
