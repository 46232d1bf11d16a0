// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_FILE_H
#define HM_GLIBC_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * glibc's FILE as bytes, x86-64: struct _IO_FILE (216 bytes; offsets unchanged since 2.1, because
 * programs contain copies of its macros) and, behind it, the pointer to its table of functions
 * (libio.h, struct_FILE.h). Pure: nothing here touches a process.
 *
 * A FILE that we build gives malloc_info a place to print to without a malloc in the target,
 * without its locks (_IO_USER_LOCK, "the user locks") and without being on its list of open files.
 */
#define GLIBC_FILE_SIZE	 ((size_t)224)
#define GLIBC_LOCK_SIZE	 ((size_t)16) /* _IO_lock_t: int lock, int count, void *owner */
#define GLIBC_FILE_LOCK	 ((size_t)136)
#define GLIBC_FILE_MODE	 ((size_t)192)
#define GLIBC_FILE_WRITE ((size_t)40) /* write_ptr */

struct glibc_file_args {
	uint64_t lock;	   /* address of GLIBC_LOCK_SIZE zero bytes */
	uint64_t buf, len; /* address and length of its buffer */
	int fd;		   /* where a full buffer goes, -1: nowhere, the rest is lost */
	uint64_t vtable;   /* address of _IO_file_jumps, 0: not known, stderr's will do */
};

/*
 * Turns file, a copy of the target's _IO_2_1_stderr_ (its function table and wide part are kept:
 * both must be the target's own), into a FILE of ours. -EBADMSG if it does not look like a FILE, or
 * is one for wide characters (fwide(3) gives it another table, whose functions take what they are
 * given for wide characters and would read four times as much) and no other table is known.
 */
HM_MUST_CHECK int glibc_file_build(unsigned char file[GLIBC_FILE_SIZE],
				   const struct glibc_file_args *a);
/* Bytes of the buffer in use after the call; cut: output was lost, there was no room for it. */
size_t glibc_file_used(const unsigned char file[GLIBC_FILE_SIZE], const struct glibc_file_args *a,
		       bool *cut);

/* What matters of another FILE before a call prints to it. */
struct glibc_file_state {
	bool valid; /* has glibc's magic number */
	bool unbuffered;
	bool buffered_bytes; /* something is waiting in its buffer */
	int fd;
	int mode;	 /* 0 not yet oriented, < 0 bytes, > 0 wide characters */
	uint64_t lock;	 /* address of its lock */
	uint64_t vtable; /* address of its functions */
};
void glibc_file_inspect(const unsigned char file[GLIBC_FILE_SIZE], struct glibc_file_state *out);
#endif
