// SPDX-License-Identifier: GPL-3.0-or-later
#include "owners_kind.h"

#include <string.h>
#include <sys/mman.h>

/* Names by what they begin with; the first that fits counts. */
struct name_fact {
	const char *prefix;
	enum owner owner;
	const char *kind;
};

/* Of mappings without a file: the kernel's, and what programs tell it by PR_SET_VMA_ANON_NAME. */
static const struct name_fact anon_names[] = {
	{ "[vdso]", OWNER_VDSO, "" },
	{ "[vvar", OWNER_VDSO, "" },
	{ "[vsyscall]", OWNER_VDSO, "" },
	{ "[uprobes]", OWNER_VDSO, "" },
	{ "[sigpage]", OWNER_VDSO, "" },
	{ "[stack]", OWNER_MAIN_STACK, "" },
	/* Linux 3.4 to 4.4 named the stacks of threads */
	{ "[stack:", OWNER_THREAD_STACK, "" },
	/* glibc 2.39 with glibc.mem.decorate_maps=1; both kinds of heap memory have the first name
	 */
	{ "[anon: glibc: malloc arena]", OWNER_GLIBC_ARENA, "" },
	{ "[anon: glibc: malloc]", OWNER_GLIBC_MMAPPED, "" },
	{ "[anon: glibc: pthread", OWNER_THREAD_STACK, "" },
	{ "[anon: glibc: loader malloc]", OWNER_FILE_PRIVATE, "loader" },
	/* Go 1.25 (GODEBUG=decoratemappings=1, the default) */
	{ "[anon: Go: heap]", OWNER_GO_HEAP, "" },
	{ "[anon: Go: heap reservation]", OWNER_GO_HEAP, "" },
	{ "[anon: Go: ", OWNER_GO_RUNTIME, "" },
	{ "[anon:jemalloc", OWNER_JEMALLOC, "" },
	{ "[anon:tcmalloc", OWNER_TCMALLOC, "" },
	{ "[anon:mimalloc", OWNER_MIMALLOC, "" },
};

/* Of mappings of files. */
static const struct name_fact file_names[] = {
	/* ZGC maps the heap from memory of its own */
	{ "/memfd:java_heap", OWNER_JVM, "java heap" },
	{ "/memfd:", OWNER_SHM, "memfd" },
	{ "/dev/shm/", OWNER_SHM, "posix" },
	{ "/SYSV", OWNER_SHM, "system v" },
	/* what MAP_SHARED|MAP_ANONYMOUS is a mapping of */
	{ "/dev/zero", OWNER_SHM, "anonymous" },
	/* the same with a name of the program's */
	{ "[anon_shmem:", OWNER_SHM, "anonymous" },
	{ "/dev/", OWNER_FILE_DATA, "device" },
	{ "/[aio]", OWNER_NAMED, "" },
};

static const struct name_fact *find_name(const struct name_fact *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(name, v[i].prefix, strlen(v[i].prefix)) == 0)
			return &v[i];
	return NULL;
}

static void set(struct piece *p, enum owner owner, enum basis basis, const char *kind)
{
	p->owner = owner;
	p->basis = basis;
	p->kind = kind;
}

/*
 * Where the Go runtime puts its heap on 64-bit Linux: it asks for 0xc000000000, then for the same
 * with 1 to 127 in the byte above (mallocinit), and goes on upwards from there.
 */
static bool is_go_hint(uint64_t addr)
{
	return (addr & 0xffffffffffULL) == 0xc000000000ULL && addr >> 40 <= 0x7f;
}

static bool in_go_heap(const struct smaps_row *row, struct owner_run *go)
{
	if (row->map.shared || row->map.name[0])
		go->on = false;
	else
		go->on = is_go_hint(row->map.start) || (go->on && row->map.start == go->end);
	go->end = row->map.end;
	return go->on;
}

static void anon_owner(const struct smaps_row *row, const struct owner_facts *f, struct piece *p)
{
	const struct name_fact *fact =
		find_name(anon_names, sizeof(anon_names) / sizeof(anon_names[0]), row->map.name);

	if (fact)
		set(p, fact->owner, BASIS_KERNEL, fact->kind);
	else if (strcmp(row->map.name, "[heap]") == 0)
		set(p, f->brk, f->brk == OWNER_NAMED ? BASIS_KERNEL : BASIS_REST, "");
	else if (row->map.name[0])
		set(p, OWNER_NAMED, BASIS_KERNEL, "");
	else
		set(p, OWNER_UNCLAIMED, BASIS_KERNEL, row->map.prot ? "anonymous" : "no access");
}

static void file_owner(const struct smaps_row *row, const struct owner_facts *f, struct piece *p)
{
	const struct map *m = &row->map;
	const struct name_fact *fact =
		find_name(file_names, sizeof(file_names) / sizeof(file_names[0]), m->name);

	if (fact)
		set(p, fact->owner, BASIS_KERNEL, fact->kind);
	else if (m->name[0] != '/')
		set(p, OWNER_NAMED, BASIS_KERNEL, ""); /* anon_inode:[io_uring] and kin */
	else if (f->mounts && mounts_in_memory(f->mounts, m->dev_major, m->dev_minor))
		set(p, OWNER_SHM, BASIS_KERNEL, "tmpfs");
	else if (m->prot & PROT_EXEC)
		set(p, OWNER_FILE_TEXT, BASIS_KERNEL, "");
	else
		set(p, OWNER_FILE_DATA, BASIS_KERNEL, "");
}

void owner_of_row(const struct smaps_row *row, const struct owner_facts *f, struct owner_run *go,
		  struct piece *p)
{
	bool heap = f->go && in_go_heap(row, go);

	if (row->flags & SMAPS_HUGETLB)
		set(p, row->map.shared ? OWNER_SHM : OWNER_NAMED, BASIS_KERNEL, "huge page pool");
	else if (row->map.inode)
		file_owner(row, f, p);
	else if (heap)
		set(p, OWNER_GO_HEAP, BASIS_SHAPE, "");
	else
		anon_owner(row, f, p);
}

/* ---- what is left */

static bool is_left(const struct piece *p)
{
	return p->owner == OWNER_UNCLAIMED && !p->row->map.shared && !p->row->map.inode;
}

/* What of a runtime's it is; an allocator's memory is all alike. */
static const char *kind_of(const struct piece *p, enum owner owner)
{
	if (owner != OWNER_JVM && owner != OWNER_GO_RUNTIME)
		return "";
	if (p->row->map.prot & PROT_EXEC)
		return "code";
	return p->row->map.prot ? "other" : "reserved";
}

static void give(struct piece *p, enum owner owner, enum basis basis)
{
	set(p, owner, basis, kind_of(p, owner));
}

/* A reservation and what has been made accessible of it follow each other without a gap. */
static void give_runs(struct owners *o, const struct owner_facts *f)
{
	size_t next;

	for (size_t i = 0; i < o->n; i = next) {
		uint64_t reserved = 0;

		for (next = i; next < o->n && is_left(&o->v[next]); next++) {
			if (next > i && o->v[next].start != o->v[next - 1].end)
				break;
			if (!o->v[next].row->map.prot)
				reserved += o->v[next].a.mapped;
		}
		for (size_t k = i; k < next && reserved >= f->reserve_min; k++)
			give(&o->v[k], f->reserver, BASIS_SHAPE);
		if (next == i)
			next++;
	}
}

void owner_of_rest(struct owners *o, const struct owner_facts *f)
{
	if (f->reserver != OWNER_UNCLAIMED)
		give_runs(o, f);
	if (f->rest == OWNER_UNCLAIMED)
		return;
	for (size_t i = 0; i < o->n; i++) {
		struct piece *p = &o->v[i];

		if (is_left(p) && p->a.mapped >= f->rest_min && (p->row->map.prot || !f->rest_min))
			give(p, f->rest, BASIS_REST);
	}
}
