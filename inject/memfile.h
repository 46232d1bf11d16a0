// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MEMFILE_H
#define HM_MEMFILE_H
#include <stdint.h>

#include "payload/abi.h"
#include "target.h"
#include "tracer.h"

/*
 * Some calls create a file and write to it. Of a file that lies in memory nothing comes to the
 * target's disk, and none has to be opened by a name: the thread is followed from one system call
 * to the next until it asks for MEMFILE_PATH, and that call is made memfd_create(2). The file is
 * opened here too, and the thread goes on alone: it writes and closes its descriptor by itself,
 * whatever becomes of us. Should we die before, then it asks for a file that nobody can have.
 */
#define MEMFILE_PATH	"/proc/none/" HM_NAME
#define MEMFILE_NAME_AT 11 /* its last part is the memory file's name */

struct memfile {
	uint64_t path; /* where MEMFILE_PATH stands in the target */
	enum { MEMFILE_AWAITED, MEMFILE_ASKED, MEMFILE_DONE } state;
	uint64_t arg[6]; /* of the call that was replaced */
	int fd;		 /* ours, open for reading; -1 */
	int err; /* DONE: why there is none: memfd_create(2)'s errno, or descriptor_open's */
};

void memfile_init(struct memfile *m, uint64_t path);
/* th is in a system-call-stop (EV_SYSCALL). The errno of a request; what became of the file is in
 * m.
 */
HM_MUST_CHECK int memfile_stop(struct memfile *m, const struct target *t, const struct tracee *th);
/* How the thread goes on: PTRACE_SYSCALL until there is nothing more to wait for, then PTRACE_CONT.
 */
int memfile_request(const struct memfile *m);
/* Closes ours. */
void memfile_close(struct memfile *m);
#endif
