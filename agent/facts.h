// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_FACTS_H
#define HM_FACTS_H
#include <stdbool.h>
#include <stdint.h>

/*
 * What is known of a process, each under one name that is the same in every output: tables, JSON,
 * snapshots, Prometheus, conditions of runbooks. A fact that could not be read is not known, which
 * is not the same as zero.
 */
enum fact_id {
	FACT_RSS,
	FACT_ANON,
	FACT_SWAP,
	FACT_PSS,
	FACT_THREADS,
	FACT_MINFLT,
	FACT_UPTIME,
	FACT_CGROUP_USED,
	FACT_CGROUP_LIMIT,
	FACT_CGROUP_FRACTION,
	FACT_STACKS_RESIDENT,
	FACT_FILES_RESIDENT,
	FACT_SHM_RESIDENT,
	FACT_OTHER_RESIDENT,
	FACT_GLIBC_VERSION,
	FACT_GLIBC_ARENAS,
	FACT_GLIBC_ARENA_LIMIT,
	FACT_GLIBC_SYSTEM,
	FACT_GLIBC_IN_USE,
	FACT_GLIBC_FREE,
	FACT_GLIBC_FREE_RESIDENT,
	FACT_GLIBC_STRANDED,
	FACT_GLIBC_TCACHE,
	FACT_GLIBC_MMAPPED,
	FACT_GLIBC_TRIMMABLE,
	FACT_GLIBC_TRIM_THRESHOLD,
	FACT_GLIBC_MMAP_THRESHOLD,
	FACT_JEMALLOC_VERSION,
	FACT_JEMALLOC_ALLOCATED,
	FACT_JEMALLOC_ACTIVE,
	FACT_JEMALLOC_METADATA,
	FACT_JEMALLOC_RESIDENT,
	FACT_JEMALLOC_MAPPED,
	FACT_JEMALLOC_RETAINED,
	FACT_JEMALLOC_DIRTY,
	FACT_JEMALLOC_MUZZY,
	FACT_JEMALLOC_PURGEABLE,
	FACT_JEMALLOC_FRAGMENTATION,
	FACT_JEMALLOC_NARENAS,
	FACT_JEMALLOC_BACKGROUND_THREAD,
	FACT_JEMALLOC_PROF_ACTIVE,
	FACT_TCMALLOC_VERSION,
	FACT_TCMALLOC_ALLOCATED,
	FACT_TCMALLOC_HEAP,
	FACT_TCMALLOC_PAGEHEAP_FREE,
	FACT_TCMALLOC_UNMAPPED,
	FACT_TCMALLOC_THREAD_CACHES,
	FACT_TCMALLOC_CENTRAL_CACHE,
	FACT_TCMALLOC_TRANSFER_CACHE,
	FACT_TCMALLOC_THREAD_CACHES_MAX,
	FACT_MIMALLOC_VERSION,
	FACT_MIMALLOC_COMMITTED,
	FACT_MIMALLOC_COMMITTED_PEAK,
	FACT_GO_HEAP_MAPPED,
	FACT_GO_HEAP_RESIDENT,
	FACT_COUNT
};

enum fact_kind {
	KIND_BYTES,
	KIND_COUNT,
	KIND_COUNTER, /* only ever grows: _total in Prometheus */
	KIND_SECONDS,
	KIND_FRACTION, /* 0 to 1 */
	KIND_BOOL,
	KIND_TEXT,
};

/* What a fact costs to know. */
enum fact_cost {
	COST_QUICK, /* the kernel tells it at once */
	COST_LOOK,  /* mappings or the heap are read */
	COST_CALL,  /* the allocator is asked by a call */
};

/* Where a number comes from. */
enum fact_origin { FROM_KERNEL, FROM_PASSIVE, FROM_CALL, FROM_PREDICTION };

struct fact_info {
	const char *name;
	enum fact_kind kind;
	enum fact_cost cost;
	const char *meaning; /* a line for `help` and Prometheus */
};

struct fact {
	bool known;
	enum fact_origin origin;
	uint64_t n;	 /* of every kind but fractions and texts */
	double fraction; /* of KIND_FRACTION */
	char text[32];	 /* of KIND_TEXT */
};

/* Zeroed: nothing is known. */
struct facts {
	struct fact v[FACT_COUNT];
};

const struct fact_info *fact_info(enum fact_id id);
/* FACT_COUNT if there is no fact of that name. */
enum fact_id fact_by_name(const char *name);
const char *origin_name(enum fact_origin o); /* "kernel", "passive", "called", "predicted" */

void facts_set(struct facts *f, enum fact_id id, enum fact_origin o, uint64_t n);
/* part / whole; not known where whole is 0. Held between 0 and 1. */
void facts_set_share(struct facts *f, enum fact_id id, enum fact_origin o, uint64_t part,
		     uint64_t whole);
void facts_set_text(struct facts *f, enum fact_id id, enum fact_origin o, const char *text);
/* 0 where it is not known. */
uint64_t facts_get(const struct facts *f, enum fact_id id);
bool facts_known(const struct facts *f, enum fact_id id);
#endif
