// SPDX-License-Identifier: GPL-3.0-or-later
#include "facts.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct fact_info infos[FACT_COUNT] = {
	[FACT_RSS] = { "rss", KIND_BYTES, COST_QUICK, "resident memory, as smaps_rollup counts it" },
	[FACT_ANON] = { "anon", KIND_BYTES, COST_QUICK, "resident anonymous memory" },
	[FACT_SWAP] = { "swap", KIND_BYTES, COST_QUICK, "memory that is swapped out" },
	[FACT_PSS] = { "pss", KIND_BYTES, COST_QUICK, "resident memory, shared pages divided by their users" },
	[FACT_THREADS] = { "threads", KIND_COUNT, COST_QUICK, "threads" },
	[FACT_MINFLT] = { "minflt", KIND_COUNTER, COST_QUICK, "minor page faults so far" },
	[FACT_UPTIME] = { "uptime", KIND_SECONDS, COST_QUICK, "time since the process started" },
	[FACT_CGROUP_USED] = { "cgroup.used", KIND_BYTES, COST_QUICK, "memory charged to the cgroup that limits it" },
	[FACT_CGROUP_LIMIT] = { "cgroup.limit", KIND_BYTES, COST_QUICK, "the tightest limit of its cgroups" },
	[FACT_CGROUP_FRACTION] = { "cgroup.fraction", KIND_FRACTION, COST_QUICK, "cgroup.used of cgroup.limit" },
	[FACT_STACKS_RESIDENT] = { "stacks.resident", KIND_BYTES, COST_LOOK, "resident stacks of its threads" },
	[FACT_FILES_RESIDENT] = { "files.resident", KIND_BYTES, COST_LOOK, "resident pages of mapped files, without shm and tmpfs" },
	[FACT_SHM_RESIDENT] = { "shm.resident", KIND_BYTES, COST_LOOK, "resident shared memory and tmpfs" },
	[FACT_OTHER_RESIDENT] = { "other.resident", KIND_BYTES, COST_LOOK, "resident memory that no owner is known of" },
	[FACT_GLIBC_VERSION] = { "glibc.version", KIND_TEXT, COST_LOOK, "version of glibc" },
	[FACT_GLIBC_ARENAS] = { "glibc.arenas", KIND_COUNT, COST_LOOK, "glibc's arenas" },
	[FACT_GLIBC_ARENA_LIMIT] = { "glibc.arena_limit", KIND_COUNT, COST_LOOK, "how many arenas glibc makes at most" },
	[FACT_GLIBC_SYSTEM] = { "glibc.system", KIND_BYTES, COST_LOOK, "what the arenas have from the kernel, without mmapped chunks" },
	[FACT_GLIBC_IN_USE] = { "glibc.in_use", KIND_BYTES, COST_LOOK, "glibc.system that is not free; thread caches count as in use" },
	[FACT_GLIBC_FREE] = { "glibc.free", KIND_BYTES, COST_LOOK, "free inside the arenas" },
	[FACT_GLIBC_FREE_RESIDENT] = { "glibc.free_resident", KIND_BYTES, COST_LOOK, "glibc.free that is resident" },
	[FACT_GLIBC_STRANDED] = { "glibc.stranded", KIND_BYTES, COST_LOOK, "glibc.free_resident on pages that a trim cannot return" },
	[FACT_GLIBC_TCACHE] = { "glibc.tcache", KIND_BYTES, COST_LOOK, "chunks in the threads' caches" },
	[FACT_GLIBC_MMAPPED] = { "glibc.mmapped", KIND_BYTES, COST_LOOK, "chunks with a mapping of their own" },
	[FACT_GLIBC_TRIMMABLE] = { "glibc.trimmable", KIND_BYTES, COST_LOOK, "what malloc_trim(0) would return" },
	[FACT_GLIBC_TRIM_THRESHOLD] = { "glibc.trim_threshold", KIND_BYTES, COST_LOOK, "free memory at the top from where on it is returned" },
	[FACT_GLIBC_MMAP_THRESHOLD] = { "glibc.mmap_threshold", KIND_BYTES, COST_LOOK, "size from where on a chunk gets a mapping of its own" },
	[FACT_JEMALLOC_VERSION] = { "jemalloc.version", KIND_TEXT, COST_LOOK, "version of jemalloc" },
	[FACT_JEMALLOC_ALLOCATED] = { "jemalloc.allocated", KIND_BYTES, COST_CALL, "allocated by the program" },
	[FACT_JEMALLOC_ACTIVE] = { "jemalloc.active", KIND_BYTES, COST_CALL, "pages that hold allocations" },
	[FACT_JEMALLOC_METADATA] = { "jemalloc.metadata", KIND_BYTES, COST_CALL, "jemalloc's own books" },
	[FACT_JEMALLOC_RESIDENT] = { "jemalloc.resident", KIND_BYTES, COST_CALL, "resident as jemalloc estimates it" },
	[FACT_JEMALLOC_MAPPED] = { "jemalloc.mapped", KIND_BYTES, COST_CALL, "mapped extents" },
	[FACT_JEMALLOC_RETAINED] = { "jemalloc.retained", KIND_BYTES, COST_CALL, "address space that is kept, without memory" },
	[FACT_JEMALLOC_DIRTY] = { "jemalloc.dirty", KIND_BYTES, COST_CALL, "unused pages not yet purged" },
	[FACT_JEMALLOC_MUZZY] = { "jemalloc.muzzy", KIND_BYTES, COST_CALL, "unused pages lazily freed: the kernel takes them under pressure" },
	[FACT_JEMALLOC_PURGEABLE] = { "jemalloc.purgeable", KIND_BYTES, COST_CALL, "dirty and muzzy" },
	[FACT_JEMALLOC_FRAGMENTATION] = { "jemalloc.fragmentation", KIND_FRACTION, COST_CALL, "1 - allocated / active" },
	[FACT_JEMALLOC_NARENAS] = { "jemalloc.narenas", KIND_COUNT, COST_CALL, "jemalloc's arenas" },
	[FACT_JEMALLOC_BACKGROUND_THREAD] = { "jemalloc.background_thread", KIND_BOOL, COST_CALL, "does a thread of jemalloc's own purge" },
	[FACT_JEMALLOC_PROF_ACTIVE] = { "jemalloc.prof_active", KIND_BOOL, COST_CALL, "is heap profiling switched on" },
	[FACT_TCMALLOC_VERSION] = { "tcmalloc.version", KIND_TEXT, COST_LOOK, "version of gperftools" },
	[FACT_TCMALLOC_ALLOCATED] = { "tcmalloc.allocated", KIND_BYTES, COST_CALL, "allocated by the program" },
	[FACT_TCMALLOC_HEAP] = { "tcmalloc.heap", KIND_BYTES, COST_CALL, "address space of tcmalloc's page heap" },
	[FACT_TCMALLOC_PAGEHEAP_FREE] = { "tcmalloc.pageheap_free", KIND_BYTES, COST_CALL, "free spans that a trim returns; some may never have been touched" },
	[FACT_TCMALLOC_UNMAPPED] = { "tcmalloc.unmapped", KIND_BYTES, COST_CALL, "free spans whose memory is given back already" },
	[FACT_TCMALLOC_THREAD_CACHES] = { "tcmalloc.thread_caches", KIND_BYTES, COST_CALL, "free objects in the caches of threads" },
	[FACT_TCMALLOC_CENTRAL_CACHE] = { "tcmalloc.central_cache", KIND_BYTES, COST_CALL, "free objects in the central lists, on spans with live ones" },
	[FACT_TCMALLOC_TRANSFER_CACHE] = { "tcmalloc.transfer_cache", KIND_BYTES, COST_CALL, "free objects on their way between threads" },
	[FACT_TCMALLOC_THREAD_CACHES_MAX] = { "tcmalloc.thread_caches_max", KIND_BYTES, COST_CALL, "what the caches of all threads may hold" },
	[FACT_MIMALLOC_VERSION] = { "mimalloc.version", KIND_TEXT, COST_LOOK, "version of mimalloc" },
	[FACT_MIMALLOC_COMMITTED] = { "mimalloc.committed", KIND_BYTES, COST_CALL, "memory that mimalloc has and has not given back" },
	[FACT_MIMALLOC_COMMITTED_PEAK] = { "mimalloc.committed_peak", KIND_BYTES, COST_CALL, "the most that it had" },
	[FACT_GO_HEAP_MAPPED] = { "go.heap_mapped", KIND_BYTES, COST_LOOK, "Go's heap arenas, mapped" },
	[FACT_GO_HEAP_RESIDENT] = { "go.heap_resident", KIND_BYTES, COST_LOOK, "Go's heap arenas, resident" },
};
/* clang-format on */

const struct fact_info *fact_info(enum fact_id id)
{
	return &infos[id];
}

enum fact_id fact_by_name(const char *name)
{
	for (unsigned i = 0; i < FACT_COUNT; i++)
		if (strcmp(infos[i].name, name) == 0)
			return (enum fact_id)i;
	return FACT_COUNT;
}

const char *origin_name(enum fact_origin o)
{
	static const char *const names[] = { "kernel", "passive", "called", "predicted" };

	return names[o];
}

void facts_set(struct facts *f, enum fact_id id, enum fact_origin o, uint64_t n)
{
	f->v[id] = (struct fact){ .known = true, .origin = o, .n = n };
}

void facts_set_share(struct facts *f, enum fact_id id, enum fact_origin o, uint64_t part,
		     uint64_t whole)
{
	struct fact *v = &f->v[id];

	*v = (struct fact){ .known = whole != 0, .origin = o };
	if (whole)
		v->fraction = part < whole ? (double)part / (double)whole : 1;
}

void facts_set_text(struct facts *f, enum fact_id id, enum fact_origin o, const char *text)
{
	struct fact *v = &f->v[id];

	*v = (struct fact){ .known = *text != '\0', .origin = o };
	snprintf(v->text, sizeof(v->text), "%s", text);
}

uint64_t facts_get(const struct facts *f, enum fact_id id)
{
	return f->v[id].known ? f->v[id].n : 0;
}

bool facts_known(const struct facts *f, enum fact_id id)
{
	return f->v[id].known;
}
