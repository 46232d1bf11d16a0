// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_READER_H
#define HM_READER_H
#include <stddef.h>
#include <stdint.h>

/*
 * Memory that can be looked at: of a living process (peek.h), of a saved one, of a test. Analysers
 * read through it and know nothing of where it comes from.
 */
struct reader {
	/*
	 * All of [addr, addr + len) or an error: -EFAULT if a part of it is no writable private
	 * memory of the process, -ENODATA if a part is not to be had (swapped out, not saved),
	 * -ESRCH if the process is gone. Memory that was never touched is zeros.
	 */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	/* Forgets what was kept: what is read from now on is new. Does nothing where nothing can
	 * change. */
	void (*refresh)(void *ctx);
	void *ctx;
};
#endif
