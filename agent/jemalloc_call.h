// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_CALL_H
#define HM_JEMALLOC_CALL_H
#include "mallctl.h"
#include "process.h"

/*
 * Single mallctl calls, put together and taken apart in the session's scratch memory: the pieces
 * that jemalloc_ctl.h and jemalloc_sweep.h make batches of. jemalloc refuses sizes that are not
 * exactly those of the type (EINVAL).
 */

/* Pointers into the session's scratch. */
struct ctl_call {
	unsigned char *old; /* 8 bytes, NULL: nothing is read */
	uint64_t *old_len;
	unsigned char *new; /* 8 bytes, NULL: nothing is written */
};
/* What is to be done with a name of a type of this size. */
struct ctl_io {
	bool read, write;
	size_t size;
};

/* Address of the function NAME with the prefix of that build. Exit 5 if it has none such. */
HM_MUST_CHECK int jemalloc_symbol(const struct allocator *a, const char *name, uint64_t *addr,
				  struct diag *d);
/* int mallctl(name, oldp, oldlenp, newp, newlen). -ENOMEM: scratch is full. */
HM_MUST_CHECK int ctl_call_name(struct session *s, uint64_t fn, const char *name,
				const struct ctl_io *io, struct call *c, struct ctl_call *out);
/* int mallctlbymib(mib, miblen, oldp, oldlenp, newp, newlen), of n numbers. */
HM_MUST_CHECK int ctl_call_mib(struct session *s, uint64_t fn, const uint64_t *mib, unsigned n,
			       const struct ctl_io *io, struct call *c, struct ctl_call *out);
/* Puts the value where newp points to. A string is passed as a pointer to a pointer. */
HM_MUST_CHECK int ctl_call_place(struct session *s, const struct ctl_value *v,
				 const struct ctl_call *io);
/*
 * The value that a read has left. A string is the target's: read within bounds, escaped. -EPROTO if
 * mallctl has left another size, -EFAULT for a string that cannot be read.
 */
HM_MUST_CHECK int ctl_call_take(const struct process *p, enum ctl_type type,
				const struct ctl_call *io, struct ctl_value *out);
#endif
