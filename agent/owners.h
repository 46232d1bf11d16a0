// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OWNERS_H
#define HM_OWNERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/mounts.h"
#include "../inject/smaps.h"

/*
 * One owner for each resident byte. Pure: rows of smaps and facts in, pieces out. Three kinds of
 * mapping hold two owners and are divided: a private mapping of a file (pages of the file, and
 * copies of pages that were written), a mapping that the kernel has merged from neighbours (stack
 * and heap, bss and heap), and a reservation of which only a part is used.
 */
enum owner {
	OWNER_GLIBC_MAIN,    /* the main arena: brk and what continues it */
	OWNER_GLIBC_ARENA,   /* heaps of the other arenas */
	OWNER_GLIBC_MMAPPED, /* blocks with a mapping of their own */
	OWNER_JEMALLOC,
	OWNER_TCMALLOC,
	OWNER_MIMALLOC,
	OWNER_MUSL,
	OWNER_GO_HEAP,
	OWNER_GO_RUNTIME,
	OWNER_JVM,
	OWNER_THREAD_STACK, /* with guard and static TLS */
	OWNER_MAIN_STACK,
	OWNER_FILE_TEXT, /* pages of a file that is mapped for execution: the kernel can drop them
			  */
	OWNER_FILE_DATA, /* other pages of files: likewise */
	OWNER_FILE_PRIVATE, /* a program's and its libraries' own memory: written copies (.data),
			       .bss, the main thread's TLS */
	OWNER_SHM,	    /* shared memory and tmpfs */
	OWNER_VDSO,
	OWNER_NAMED, /* named by the kernel or by the program, and nobody else's */
	OWNER_UNCLAIMED,
	OWNERS
};
/* "glibc-main" ...; the words are a contract with scripts. */
const char *owner_name(enum owner o);

/* How the owner is known, the surest first. */
enum basis {
	BASIS_KERNEL, /* the kernel says it: file, [stack], a name */
	BASIS_READ,   /* the program's own bookkeeping says it */
	BASIS_SHAPE,  /* addresses, sizes and neighbours fit nobody else */
	BASIS_REST,   /* nobody else in this process makes such mappings */
};
const char *basis_name(enum basis b); /* "kernel", "read", "shape", "rest" */

/* An address range that somebody is known to own. Text is static. */
struct claim {
	uint64_t start, end; /* page aligned */
	enum owner owner;
	enum basis basis;
	const char *kind; /* "java heap"; "" */
	long id;	  /* tid or arena number, -1: none */
};

/* Where two claims overlap, the class named first counts. */
enum claim_class { CLAIM_ALLOCATOR, CLAIM_STACK, CLAIM_MODULE, CLAIM_RUNTIME, CLAIM_CLASSES };

struct claims {
	struct claim *v;
	size_t n, cap;
};

/* Bytes in memory and in swap of [lo, hi): 0 or a negative errno. */
typedef int (*owners_count_fn)(void *ctx, uint64_t lo, uint64_t hi, uint64_t *resident,
			       uint64_t *swapped);

/* All that is known about a process beside its mappings. Zeroed: nothing is. */
struct owner_facts {
	struct claims claims[CLAIM_CLASSES];
	/* Whose [heap] and what lies behind the last claim in it is; OWNER_NAMED: not known. */
	enum owner brk;
	/* Who makes anonymous mappings of at least rest_min bytes in this process, if only one can;
	 * else OWNER_UNCLAIMED. */
	enum owner rest;
	uint64_t rest_min;
	/* Whose anonymous mappings are that lie next to address space they have reserved without
	 * access (at least reserve_min bytes); else OWNER_UNCLAIMED. */
	enum owner reserver;
	uint64_t reserve_min;
	bool go; /* a Go program: its heap is at the runtime's fixed addresses */
	const struct mounts *mounts; /* NULL: none */
	owners_count_fn count;	     /* divides a mapping by its pages; NULL: by length */
	void *count_ctx;
};
void owner_facts_init(struct owner_facts *f);
void owner_facts_free(struct owner_facts *f);
/* Adds a claim (start and end are widened to pages). -ENOMEM; -EINVAL for an empty range. */
HM_MUST_CHECK int owner_claim(struct owner_facts *f, enum claim_class class, const struct claim *c);

/* Bytes. */
struct amounts {
	uint64_t mapped, resident, swap;
	uint64_t huge;	   /* part of resident in huge pages of any kind */
	uint64_t lazyfree; /* MADV_FREE'd: the kernel takes it when it needs it */
	uint64_t locked;   /* as Locked counts: the process's share */
	uint64_t hugetlb;  /* from the pool of huge pages: no part of resident */
};

struct piece {
	uint64_t start, end;
	const struct smaps_row *row; /* the mapping that it is of */
	enum owner owner;
	enum basis basis;
	const char *kind; /* what of the owner's it is, static text or "" */
	long id;	  /* tid or arena number, -1: none */
	bool continues;	  /* the piece before it is of the same thing: one stack, one heap */
	struct amounts a;
};

struct owners {
	struct piece *v; /* by address; the two halves of a file's mapping have the same */
	size_t n, cap;
	struct amounts total;
	size_t estimated; /* so many mappings were divided by length: their pages could not be
			     counted */
};
/*
 * Divides s among owners: the pieces of a mapping add up to its figures exactly, all pieces to the
 * total. Figures other than resident and swap of a divided mapping are divided in proportion to
 * what is resident. -ENOMEM. s must live as long as out; the caller frees with owners_free. Takes
 * n log n time in mappings and claims.
 */
HM_MUST_CHECK int owners_assign(const struct smaps *s, struct owner_facts *f, struct owners *out);
/* Adds up the total of pieces that did not come from owners_assign. */
void owners_sum(struct owners *o);
void owners_free(struct owners *o);

/* One row of the table: all pieces of one owner and kind. */
struct owner_row {
	enum owner owner;
	enum basis basis; /* the least sure one of its pieces */
	const char *kind;
	const struct piece *largest; /* by resident, then by mapped bytes */
	size_t count;		     /* of things: stacks, heaps, mappings */
	struct amounts a;
};
struct owner_table {
	struct owner_row *v; /* most resident first */
	size_t n;
};
HM_MUST_CHECK int owners_table(const struct owners *o, struct owner_table *out);
void owner_table_free(struct owner_table *t);
/* What a piece is of: a path's last part, a name, or the piece's kind; "" if there is no more to
 * say. Not escaped. */
const char *piece_label(const struct piece *p);
#endif
