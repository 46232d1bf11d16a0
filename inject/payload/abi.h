// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PAYLOAD_ABI_H
#define HM_PAYLOAD_ABI_H
/*
 * What the host and the code inside the target share: one block of memory at a fixed place of the
 * region. Both sides are built together, so the layout needs no version; offsets that the assembly
 * uses are asserted in payload.c.
 *
 * The region, from its base (all sizes in whole pages):
 *   text    R-X  the payload; also the guard below the stack that follows
 *   stack   RW   on which the borrowed thread runs the boot code, and direct calls
 *   block   RW   struct hm_block
 *   scratch RW   arguments and results of calls
 *   out     RW   captured text
 * and for a proxy
 *   guard   R-X  never written: an overflow of the proxy's stack faults here
 *   pstack  RW   the proxy thread's stack, with glibc's thread descriptor at its end
 */
#ifndef __ASSEMBLER__
#include <stdint.h>

#define HM_BLOCK_MAGIC	0x6369646d70616568ULL /* "heapmdic" */
#define HM_NAME		"heapmedic"
#define HM_MAX_CALLS	64
#define HM_MAX_REAP	256
#define HM_PARTING_DATA 64
#define HM_CALL_ARGS	8 /* the last two on the stack */

enum hm_mode { HM_MODE_PROXY = 1, HM_MODE_DIRECT = 2 };

/* Of the borrowed thread. From ARMED on it may be executing in the region; from DONE on it is
 * leaving it. */
enum hm_boot_state { HM_BOOT_EMPTY = 0, HM_BOOT_ARMED = 1, HM_BOOT_RUNNING = 2, HM_BOOT_DONE = 3 };

/* Of the proxy thread. */
enum hm_proxy_state {
	HM_PROXY_NONE = 0,
	HM_PROXY_STARTED = 1,
	HM_PROXY_READY = 2, /* descriptors are published */
	HM_PROXY_SERVING = 3,
	HM_PROXY_LEAVING = 4,
	HM_PROXY_FAILED =
		5, /* could not start; waits for the host to write LEAVING, or some time */
};

/* One byte each through the request pipe; EOF means quit. */
enum hm_request { HM_REQ_OPENED = 'o', HM_REQ_CALL = 'c', HM_REQ_QUIT = 'q' };

struct hm_slot {
	uint64_t fn, arg[HM_CALL_ARGS];
	uint64_t ret, err, ns;
	uint64_t swap_addr, swap_value;
	uint64_t keep_addr; /* of an int, 0: none */
};

struct hm_range {
	uint64_t addr, len;
};

struct hm_block {
	uint64_t magic;
	uint64_t base;	     /* of the region */
	uint64_t munmap_len; /* what the proxy takes with it: everything below its own stack */
	uint64_t fn_munmap;
	uint64_t pstack_addr, pstack_len;

	uint64_t size; /* of the region */
	uint32_t mode; /* enum hm_mode */
	uint32_t boot_state;
	int32_t marker; /* signal that tells the host the boot code is done */
	int32_t boot_rc;
	uint64_t call_mask; /* signals that the proxy blocks while it runs calls */
	uint64_t fn_errno_location;
	uint64_t fn_attr_init, fn_attr_setstack, fn_attr_setdetachstate, fn_attr_destroy, fn_create;
	uint64_t fn_proxy; /* address of proxy_entry */
	/* arena.c; fn_malloc and arena_off are 0 where that is not needed, or not possible */
	uint64_t fn_malloc, fn_free;
	uint64_t arena_off; /* thread_arena lies so far below a thread pointer */
	uint64_t arena;	    /* of the borrowed thread, once it has created the proxy */
	uint64_t n_reap;
	struct hm_range reap[HM_MAX_REAP];

	/* the proxy's restartable-sequence registration (rseq(2)), which must go before its memory
	 * does */
	uint64_t rseq_addr, rseq_len, rseq_sig;

	int32_t max_fd;	   /* highest descriptor of the target, for kernels without close_range */
	int32_t proxy_tid; /* as the target's own pid namespace numbers it */
	uint32_t proxy_state;
	int32_t proxy_errno; /* why a start failed */
	int32_t proxy_step;
	int32_t lent_tid; /* the borrowed thread, as heapmedic's pid namespace numbers it */
	int32_t fd_out, fd_request, fd_request_host, fd_reply, fd_reply_host;

	uint64_t out_addr, out_size, out_used, out_lost;

	uint32_t n_calls, n_done;
	struct hm_slot slot[HM_MAX_CALLS];
	struct hm_slot parting; /* made by the proxy at the end of file; fn 0: nothing is */
	uint64_t parting_data[HM_PARTING_DATA / 8];
	uint64_t thread_id; /* pthread_t */
	uint64_t attr[16];  /* pthread_attr_t */
};
#endif

/* offsets that entry.S uses */
#define HM_OFF_BASE	  8
#define HM_OFF_MUNMAP_LEN 16
#define HM_OFF_FN_MUNMAP  24

/* offsets of the payload's entry table */
#define HM_ENTRY_BOOT  0
#define HM_ENTRY_PROXY 8
#define HM_ENTRY_SINK  16
#define HM_ENTRY_BLOCK 24 /* written by the host: distance from the text to the block */
#define HM_ENTRY_TEXT  32
#endif
