// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TCB_H
#define HM_TCB_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "maps.h"
#include "pages.h"
#include "target.h"

/*
 * glibc's struct pthread (x86-64), which the thread pointer points to. It starts with a pointer to
 * itself, has the same again 16 bytes on (tcbhead_t: tcb and self), is aligned to 64 bytes
 * (TCB_ALIGNMENT), and holds the thread's tid as its own pid namespace counts.
 */
#define TCB_TID_OFFSET 0x2d0U /* glibc 2.17 to 2.42; _thread_db_pthread_tid says it exactly */

/*
 * Pure: the highest address in [base, base + len) where a struct pthread with that tid lies, 0 if
 * there is none. buf holds the memory from base on; base is a multiple of 8.
 */
uint64_t tcb_scan(const void *buf, size_t len, uint64_t base, uint32_t tid_offset, pid_t tid);

/* Searches only what is in memory: a read of any other page would put one there. */
struct tcb_finder {
	pid_t pid;	     /* whose memory */
	struct pages pages;  /* fd -1 where the kernel does not tell: all is read then */
	uint32_t tid_offset; /* TCB_TID_OFFSET unless the target says otherwise */
	char *buf;	     /* tcb_finder_init allocates, tcb_finder_free frees */
	size_t budget;	     /* bytes that long searches may still read, over all threads */
};
HM_MUST_CHECK int tcb_finder_init(struct tcb_finder *f, const struct target *t,
				  uint32_t tid_offset);
void tcb_finder_free(struct tcb_finder *f);
/*
 * The struct pthread of tid above sp in the mapping that ends at hi: first near its end, where
 * pthread_create puts it below nothing but padding, then up to 1 MiB from either side (large static
 * TLS; stacks that the kernel has merged into one mapping). 0 if not found.
 */
uint64_t tcb_find(struct tcb_finder *f, uint64_t sp, uint64_t hi, pid_t tid);
/*
 * The same through glibc's list of the stacks that it has not made itself (2.34, rtld_global),
 * where the main thread's is: head is the address of the list, link_offset that of the list entry
 * in struct pthread.
 */
uint64_t tcb_find_listed(struct tcb_finder *f, uint64_t head, uint32_t link_offset, pid_t tid);
/*
 * The main thread's without that list: ld.so puts it into a small anonymous mapping, a static
 * program at the start of the heap.
 */
uint64_t tcb_find_main(struct tcb_finder *f, const struct maps *maps, pid_t tid);
#endif
