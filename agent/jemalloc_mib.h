// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_MIB_H
#define HM_JEMALLOC_MIB_H
#include "jemalloc_ctl.h"

/* Names by their numbers: mallctlnametomib once, then mallctlbymib, many to a batch. */

/* How much is asked in one batch: of SESSION_MAX_CALLS. */
#define SWEEP_BATCH   56
#define CTL_NAME_SIZE 128
/* A name's number; rc is what mallctlnametomib returned, EPROTO for another length. */
struct ctl_mib {
	uint64_t part[8];
	unsigned n;
	int rc;
};
/* Of n names, whose indices must be there, in one batch. At most SWEEP_BATCH; v[i].n is given. */
HM_MUST_CHECK int jemalloc_mibs(struct process *p, const struct allocator *a,
				char (*name)[CTL_NAME_SIZE], struct ctl_mib *v, size_t n,
				struct diag *d);
/* n answers of one batch; each has a mib of its own. At most SWEEP_BATCH. */
struct mib_ask {
	struct ctl_mib mib;
	enum ctl_type type;
	const struct ctl_value *value; /* to write; NULL: none */
	bool read;
	int rc;
	struct ctl_value old;
};
HM_MUST_CHECK int jemalloc_mib_ask(struct process *p, const struct allocator *a, struct mib_ask *v,
				   size_t n, struct diag *d);
#endif
