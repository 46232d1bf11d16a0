// SPDX-License-Identifier: GPL-3.0-or-later
#include "snapshot_fields.h"

#include "snapshot.h"

/* ---- words of enums */

static const char *owner_word(unsigned i)
{
	return owner_name((enum owner)i);
}

static const char *basis_word(unsigned i)
{
	return basis_name((enum basis)i);
}

static const char *verdict_word(unsigned i)
{
	return verdict_name((enum verdict)i);
}

static const char *action_word(unsigned i)
{
	return advice_action_name((enum advice_action)i);
}

static const char *linkage_word(unsigned i)
{
	return linkage_name((enum linkage)i);
}

static const char *reach_word(unsigned i)
{
	return allocator_reach_name((enum allocator_reach)i);
}

static const char *fault_word(unsigned i)
{
	return glibc_fault_name((enum glibc_fault_kind)i);
}

static const char *place_word(unsigned i)
{
	static const char *const names[] = {
		[PLACE_RING] = "ring", [PLACE_HEAPS] = "heaps",	  [PLACE_FASTBIN] = "fastbin",
		[PLACE_BIN] = "bin",   [PLACE_CHUNKS] = "chunks", [PLACE_TCACHE] = "tcache",
	};

	return names[i];
}

/* clang-format off */
/* ---- rows of tables: S is the struct, M its member, N the name in the file */

#define AT(S, M)	.offset = offsetof(struct S, M), .size = sizeof(((struct S *)0)->M)
#define POINTER(S, M)	.offset = offsetof(struct S, M), .size = sizeof(void *)
#define PLAIN(K, S, M)	{ .name = #M, .kind = FIELD_##K, AT(S, M) }
#define NAMED(N, K, S, M) { .name = (N), .kind = FIELD_##K, AT(S, M) }
#define MUST(N, K, S, M) { .name = (N), .kind = FIELD_##K, .must = true, AT(S, M) }
#define BYTES(N, S, M)	{ .name = (N), .kind = FIELD_UNSIGNED, AT(S, M), .max = FIELD_BYTES_MAX }
#define WORD(S, M, F, LAST) \
	{ .name = #M, .kind = FIELD_ENUM, .must = true, AT(S, M), .max = (LAST) + 1, .word = (F) }
#define OBJECT(S, M, T) { .name = #M, .kind = FIELD_OBJECT, AT(S, M), .sub = (T) }
#define END		{ .name = NULL }

static const struct field mapping_fields[] = {
	MUST("start", ADDRESS, smaps_row, map.start),
	MUST("end", ADDRESS, smaps_row, map.end),
	NAMED("name", NAME, smaps_row, map.name),
	NAMED("offset", UNSIGNED, smaps_row, map.offset),
	NAMED("prot", SIGNED, smaps_row, map.prot),
	NAMED("shared", BOOL, smaps_row, map.shared),
	NAMED("deleted", BOOL, smaps_row, map.deleted),
	NAMED("dev_major", UNSIGNED, smaps_row, map.dev_major),
	NAMED("dev_minor", UNSIGNED, smaps_row, map.dev_minor),
	NAMED("inode", UNSIGNED, smaps_row, map.inode),
	PLAIN(UNSIGNED, smaps_row, page_size),
	PLAIN(UNSIGNED, smaps_row, rss),
	PLAIN(UNSIGNED, smaps_row, pss),
	PLAIN(UNSIGNED, smaps_row, pss_dirty),
	PLAIN(UNSIGNED, smaps_row, shared_clean),
	PLAIN(UNSIGNED, smaps_row, shared_dirty),
	PLAIN(UNSIGNED, smaps_row, private_clean),
	PLAIN(UNSIGNED, smaps_row, private_dirty),
	PLAIN(UNSIGNED, smaps_row, referenced),
	PLAIN(UNSIGNED, smaps_row, anon),
	PLAIN(UNSIGNED, smaps_row, ksm),
	PLAIN(UNSIGNED, smaps_row, lazyfree),
	PLAIN(UNSIGNED, smaps_row, anon_huge),
	PLAIN(UNSIGNED, smaps_row, shmem_huge),
	PLAIN(UNSIGNED, smaps_row, file_huge),
	PLAIN(UNSIGNED, smaps_row, shared_hugetlb),
	PLAIN(UNSIGNED, smaps_row, private_hugetlb),
	PLAIN(UNSIGNED, smaps_row, swap),
	PLAIN(UNSIGNED, smaps_row, swap_pss),
	PLAIN(UNSIGNED, smaps_row, locked),
	PLAIN(UNSIGNED, smaps_row, flags),
	PLAIN(BOOL, smaps_row, seen_rss),
	END,
};

static const struct field piece_fields[] = {
	{ .name = "mapping", .kind = FIELD_ROW, .must = true, POINTER(piece, row) },
	MUST("start", ADDRESS, piece, start),
	MUST("end", ADDRESS, piece, end),
	WORD(piece, owner, owner_word, OWNER_UNCLAIMED),
	WORD(piece, basis, basis_word, BASIS_REST),
	{ .name = "kind", .kind = FIELD_WORDS, AT(piece, kind), .none = "" },
	MUST("id", SIGNED, piece, id),
	PLAIN(BOOL, piece, continues),
	BYTES("mapped", piece, a.mapped),
	BYTES("resident", piece, a.resident),
	BYTES("swap", piece, a.swap),
	BYTES("huge", piece, a.huge),
	BYTES("lazyfree", piece, a.lazyfree),
	BYTES("locked", piece, a.locked),
	BYTES("hugetlb", piece, a.hugetlb),
	END,
};

static const struct field usage_fields[] = {
	{ .name = "rss", .kind = FIELD_UNSIGNED, .must = true, AT(usage, rss), .max = FIELD_BYTES_MAX },
	PLAIN(UNSIGNED, usage, pss),
	PLAIN(UNSIGNED, usage, anon),
	BYTES("swap", usage, swap),
	PLAIN(UNSIGNED, usage, lazyfree),
	PLAIN(UNSIGNED, usage, locked),
	PLAIN(UNSIGNED, usage, anon_huge),
	PLAIN(UNSIGNED, usage, shmem_huge),
	PLAIN(UNSIGNED, usage, private_dirty),
	PLAIN(UNSIGNED, usage, pss_anon),
	PLAIN(UNSIGNED, usage, hugetlb),
	END,
};

static const struct field memory_fields[] = {
	{ .name = "mappings", .kind = FIELD_LIST, .must = true, .offset = offsetof(struct memory, smaps.v),
	  .size = sizeof(struct smaps_row), .count = offsetof(struct memory, smaps.n), .sub = mapping_fields },
	NAMED("torn", BOOL, memory, smaps.torn),
	{ .name = "pieces", .kind = FIELD_LIST, .must = true, .offset = offsetof(struct memory, owners.v),
	  .size = sizeof(struct piece), .count = offsetof(struct memory, owners.n), .sub = piece_fields },
	NAMED("estimated", UNSIGNED, memory, owners.estimated),
	{ .name = "usage", .kind = FIELD_OBJECT, .must = true, AT(memory, usage), .sub = usage_fields },
	END,
};

static const struct field limit_fields[] = {
	PLAIN(TEXT, cgroup_limit, path),
	PLAIN(UNSIGNED, cgroup_limit, limit),
	PLAIN(UNSIGNED, cgroup_limit, usage),
	PLAIN(UNSIGNED, cgroup_limit, reclaimable),
	PLAIN(UNSIGNED, cgroup_limit, below),
	END,
};

static const struct field cgroup_fields[] = {
	PLAIN(SIGNED, memory_cgroup, version),
	PLAIN(TEXT, memory_cgroup, path),
	OBJECT(memory_cgroup, tightest, limit_fields),
	PLAIN(UNSIGNED, memory_cgroup, high),
	PLAIN(UNSIGNED, memory_cgroup, oom_kills),
	PLAIN(BOOL, memory_cgroup, has_pressure),
	PLAIN(REAL, memory_cgroup, pressure_some),
	PLAIN(REAL, memory_cgroup, pressure_full),
	END,
};

static const struct field fault_fields[] = {
	WORD(glibc_fault, kind, fault_word, FAULT_TCACHE),
	WORD(glibc_fault, place, place_word, PLACE_TCACHE),
	PLAIN(UNSIGNED, glibc_fault, index),
	PLAIN(UNSIGNED, glibc_fault, arena),
	PLAIN(ADDRESS, glibc_fault, arena_at),
	PLAIN(ADDRESS, glibc_fault, at),
	PLAIN(ADDRESS, glibc_fault, value),
	PLAIN(ADDRESS, glibc_fault, want),
	END,
};

static const struct field class_fields[] = {
	PLAIN(UNSIGNED, glibc_classes, live),
	PLAIN(UNSIGNED, glibc_classes, stranded),
	PLAIN(UNSIGNED, glibc_classes, trimmable),
	PLAIN(UNSIGNED, glibc_classes, pinned),
	PLAIN(UNSIGNED, glibc_classes, top),
	END,
};

static const struct field arena_fields[] = {
	PLAIN(UNSIGNED, glibc_arena_plan, index),
	PLAIN(ADDRESS, glibc_arena_plan, at),
	PLAIN(UNSIGNED, glibc_arena_plan, attached),
	PLAIN(UNSIGNED, glibc_arena_plan, system_mem),
	PLAIN(UNSIGNED, glibc_arena_plan, in_use),
	PLAIN(UNSIGNED, glibc_arena_plan, free),
	PLAIN(UNSIGNED, glibc_arena_plan, top_bytes),
	OBJECT(glibc_arena_plan, pages, class_fields),
	PLAIN(UNSIGNED, glibc_arena_plan, resident),
	PLAIN(UNSIGNED, glibc_arena_plan, chunks),
	PLAIN(UNSIGNED, glibc_arena_plan, look_ns),
	PLAIN(UNSIGNED, glibc_arena_plan, ranges),
	PLAIN(UNSIGNED, glibc_arena_plan, from_top),
	PLAIN(UNSIGNED, glibc_arena_plan, huge),
	PLAIN(UNSIGNED, glibc_arena_plan, swapped),
	PLAIN(UNSIGNED, glibc_arena_plan, locked),
	PLAIN(UNSIGNED, glibc_arena_plan, hugetlb),
	PLAIN(UNSIGNED, glibc_arena_plan, free_resident),
	PLAIN(UNSIGNED, glibc_arena_plan, stranded_bytes),
	PLAIN(BOOL, glibc_arena_plan, partial),
	PLAIN(BOOL, glibc_arena_plan, moving),
	PLAIN(BOOL, glibc_arena_plan, swapped_out),
	PLAIN(BOOL, glibc_arena_plan, cut),
	OBJECT(glibc_arena_plan, fault, fault_fields),
	END,
};

static const struct field par_fields[] = {
	PLAIN(ADDRESS, glibc_par, at),
	PLAIN(UNSIGNED, glibc_par, trim_threshold),
	PLAIN(UNSIGNED, glibc_par, top_pad),
	PLAIN(UNSIGNED, glibc_par, mmap_threshold),
	PLAIN(UNSIGNED, glibc_par, arena_test),
	PLAIN(UNSIGNED, glibc_par, arena_max),
	PLAIN(UNSIGNED, glibc_par, mmapped_mem),
	PLAIN(UNSIGNED, glibc_par, max_mmapped_mem),
	PLAIN(ADDRESS, glibc_par, sbrk_base),
	PLAIN(UNSIGNED, glibc_par, tcache_max_bytes),
	PLAIN(UNSIGNED, glibc_par, tcache_count),
	PLAIN(UNSIGNED, glibc_par, thp_pagesize),
	PLAIN(SIGNED, glibc_par, n_mmaps),
	PLAIN(SIGNED, glibc_par, n_mmaps_max),
	PLAIN(SIGNED, glibc_par, max_n_mmaps),
	PLAIN(BOOL, glibc_par, no_dyn_threshold),
	END,
};

static const struct field arenas_fields[] = {
	{ .name = "list", .kind = FIELD_LIST, .offset = offsetof(struct glibc_arenas, plan.arena),
	  .size = sizeof(struct glibc_arena_plan), .count = offsetof(struct glibc_arenas, plan.arenas), .sub = arena_fields },
	{ .name = "total", .kind = FIELD_OBJECT, AT(glibc_arenas, plan.total), .sub = arena_fields },
	{ .name = "ring_fault", .kind = FIELD_OBJECT, AT(glibc_arenas, plan.ring_fault), .sub = fault_fields },
	NAMED("ring_unread", BOOL, glibc_arenas, plan.ring_unread),
	{ .name = "parameters", .kind = FIELD_OBJECT, AT(glibc_arenas, plan.par), .sub = par_fields },
	NAMED("estimate_ns", UNSIGNED, glibc_arenas, plan.estimate_ns),
	PLAIN(UNSIGNED, glibc_arenas, limit),
	PLAIN(UNSIGNED, glibc_arenas, cpus),
	PLAIN(UNSIGNED, glibc_arenas, allowed),
	END,
};

static const struct field makeup_fields[] = {
	PLAIN(UNSIGNED, makeup, rss),
	PLAIN(UNSIGNED, makeup, limit),
	PLAIN(UNSIGNED, makeup, room),
	PLAIN(UNSIGNED, makeup, retained),
	PLAIN(UNSIGNED, makeup, fragmented),
	PLAIN(UNSIGNED, makeup, live),
	PLAIN(UNSIGNED, makeup, locked),
	PLAIN(UNSIGNED, makeup, go),
	PLAIN(UNSIGNED, makeup, jvm),
	PLAIN(UNSIGNED, makeup, stacks),
	PLAIN(UNSIGNED, makeup, files),
	PLAIN(UNSIGNED, makeup, shm),
	PLAIN(UNSIGNED, makeup, other),
	PLAIN(UNSIGNED, makeup, unasked),
	PLAIN(UNSIGNED, makeup, untold),
	END,
};

static const struct field advice_fields[] = {
	WORD(advice, action, action_word, ADVICE_NOTE),
	PLAIN(TEXT, advice, text),
	PLAIN(BOOL, advice, known),
	BYTES("expected", advice, expected),
	END,
};

static const struct field diag_fields[] = {
	{ .name = "exit", .kind = FIELD_UNSIGNED, AT(diag, exit), .max = HM_INTERNAL },
	PLAIN(TEXT, diag, code),
	PLAIN(TEXT, diag, text),
	PLAIN(TEXT, diag, hint),
	END,
};

static const struct field look_fields[] = {
	{ .name = "memory", .kind = FIELD_OBJECT, .must = true, AT(look, memory), .sub = memory_fields },
	OBJECT(look, cgroup, cgroup_fields),
	MUST("facts", FACTS, look, facts),
	PLAIN(BOOL, look, glibc),
	OBJECT(look, arenas, arenas_fields),
	OBJECT(look, glibc_unread, diag_fields),
	PLAIN(BOOL, look, jemalloc_asked),
	PLAIN(TEXT, look, jemalloc_unasked),
	NAMED("tcmalloc_asked", BOOL, look, tcmalloc.asked),
	NAMED("tcmalloc_unasked", TEXT, look, tcmalloc.unasked),
	NAMED("mimalloc_asked", BOOL, look, mimalloc.asked),
	NAMED("mimalloc_unasked", TEXT, look, mimalloc.unasked),
	OBJECT(look, makeup, makeup_fields),
	WORD(look, verdict, verdict_word, VERDICT_UNDECIDED),
	PLAIN(TEXT, look, summary),
	{ .name = "advice", .kind = FIELD_ARRAY, .offset = offsetof(struct look, advice.v), .size = sizeof(struct advice),
	  .count = offsetof(struct look, advice.n), .max = ADVICE_MAX, .sub = advice_fields },
	END,
};

static const struct field allocator_fields[] = {
	{ .name = "name", .kind = FIELD_OPS, .must = true, POINTER(allocator, ops) },
	PLAIN(TEXT, allocator, file),
	PLAIN(TEXT, allocator, version),
	PLAIN(TEXT, allocator, prefix),
	PLAIN(BOOL, allocator, owns_malloc),
	PLAIN(BOOL, allocator, in_use),
	{ .name = "reach", .kind = FIELD_ENUM, AT(allocator, reach), .max = ALLOCATOR_APART + 1, .word = reach_word },
	WORD(allocator, linkage, linkage_word, LINK_STATIC),
	END,
};

static const struct field thread_fields[] = {
	MUST("tid", SIGNED, thread_row, t.tid),
	NAMED("name", TEXT, thread_row, t.name),
	MUST("state", LETTER, thread_row, t.state),
	NAMED("in_syscall", BOOL, thread_row, t.in_syscall),
	MUST("syscall", SIGNED, thread_row, t.nr),
	NAMED("usable", BOOL, thread_row, t.usable),
	NAMED("begins_anew", BOOL, thread_row, t.anew),
	NAMED("reason", WORDS, thread_row, t.reason),
	NAMED("has_arena", BOOL, thread_row, t.has_arena),
	NAMED("arena_known", BOOL, thread_row, g.slot),
	MUST("arena", SIGNED, thread_row, g.arena),
	NAMED("cache_known", BOOL, thread_row, g.cache),
	NAMED("cache_bytes", UNSIGNED, thread_row, g.bytes),
	NAMED("cache_blocks", UNSIGNED, thread_row, g.blocks),
	PLAIN(UNSIGNED, thread_row, stack_mapped),
	PLAIN(UNSIGNED, thread_row, stack_resident),
	END,
};

#define FIGURE_AT(I) .offset = offsetof(struct jemalloc_arena, v) + (I) * sizeof(int64_t), .size = sizeof(int64_t)
#define FIGURE(N, I) { .name = (N), .kind = FIELD_UNSIGNED, FIGURE_AT(I), .max = JEMALLOC_BYTES_MAX }

static const struct field jemalloc_arena_fields[] = {
	MUST("index", UNSIGNED, jemalloc_arena, index),
	PLAIN(UNSIGNED, jemalloc_arena, known),
	FIGURE("allocated", JEM_ALLOCATED),
	FIGURE("active", JEM_ACTIVE),
	FIGURE("dirty", JEM_DIRTY),
	FIGURE("muzzy", JEM_MUZZY),
	FIGURE("retained", JEM_RETAINED),
	FIGURE("mapped", JEM_MAPPED),
	FIGURE("resident", JEM_RESIDENT),
	FIGURE("metadata", JEM_METADATA),
	FIGURE("tcache", JEM_TCACHE),
	FIGURE("threads", JEM_THREADS),
	{ .name = "dirty_decay_ms", .kind = FIELD_SIGNED, FIGURE_AT(JEM_DIRTY_DECAY) },
	{ .name = "muzzy_decay_ms", .kind = FIELD_SIGNED, FIGURE_AT(JEM_MUZZY_DECAY) },
	PLAIN(BOOL, jemalloc_arena, huge),
	PLAIN(BOOL, jemalloc_arena, impossible),
	END,
};

static const struct field jemalloc_arenas_fields[] = {
	{ .name = "arenas", .kind = FIELD_LIST, .offset = offsetof(struct jemalloc_arenas, v),
	  .size = sizeof(struct jemalloc_arena), .count = offsetof(struct jemalloc_arenas, n), .sub = jemalloc_arena_fields },
	PLAIN(UNSIGNED, jemalloc_arenas, narenas),
	PLAIN(UNSIGNED, jemalloc_arenas, page),
	PLAIN(UNSIGNED, jemalloc_arenas, threshold),
	PLAIN(BOOL, jemalloc_arenas, cut),
	NAMED("epoch_known", BOOL, jemalloc_arenas, fresh.known),
	NAMED("epoch", UNSIGNED, jemalloc_arenas, fresh.epoch),
	END,
};

const struct field snapshot_fields[] = {
	NAMED("heapmedic", TEXT, snapshot, version),
	MUST("time", TIME, snapshot, time),
	PLAIN(TEXT, snapshot, host),
	PLAIN(TEXT, snapshot, kernel),
	PLAIN(TEXT, snapshot, boot),
	MUST("pid", SIGNED, snapshot, pid),
	PLAIN(UNSIGNED, snapshot, start_time),
	MUST("comm", TEXT, snapshot, comm),
	{ .name = "allocators", .kind = FIELD_ARRAY, .offset = offsetof(struct snapshot, allocs.v),
	  .size = sizeof(struct allocator), .count = offsetof(struct snapshot, allocs.n), .max = MAX_ALLOCATORS, .sub = allocator_fields },
	NAMED("more_allocators", UNSIGNED, snapshot, allocs.more),
	OBJECT(snapshot, no_arenas, diag_fields),
	OBJECT(snapshot, jemalloc_arenas, jemalloc_arenas_fields),
	{ .name = "threads", .kind = FIELD_LIST, .offset = offsetof(struct snapshot, threads.v),
	  .size = sizeof(struct thread_row), .count = offsetof(struct snapshot, threads.n), .sub = thread_fields },
	{ .name = "look", .kind = FIELD_OBJECT, .must = true, AT(snapshot, look), .sub = look_fields },
	END,
};
/* clang-format on */
