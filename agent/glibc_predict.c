// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_predict.h"

#include <errno.h>

#include "glibc_picture.h"

/* Something was not read: there may be more to give back. */
static bool is_partial(const struct glibc_plan *plan)
{
	bool partial = plan->total.swapped_out || plan->total.cut;

	for (size_t i = 0; i < plan->arenas; i++)
		partial |= plan->arena[i].fault.kind != FAULT_NONE;
	return partial || plan->ring_fault.kind != FAULT_NONE;
}

static void take(const struct glibc_plan *plan, struct prediction *out)
{
	const struct glibc_arena_plan *t = &plan->total;

	*out = (struct prediction){
		.known = true,
		.bytes = t->pages.trimmable + t->swapped,
		.ranges = t->ranges,
		.duration_ns = plan->estimate_ns,
		.locked = t->locked,
		.hugetlb = t->hugetlb,
		.moving = t->moving,
		.partial = is_partial(plan),
	};
}

int glibc_predict(struct process *p, const struct allocator *a, uint64_t pad,
		  struct prediction *out, struct diag *d)
{
	struct glibc_picture *own = NULL;
	int rc = 0;

	*out = (struct prediction){ 0 };
	if (!p->picture || p->picture->o.pad != pad)
		rc = glibc_picture_take(p, a, pad, &own, d);
	else
		rc = glibc_picture_again(p, a, p->picture, d);
	out->known = rc == -ENODATA;
	if (rc == -ENOENT || rc == -ENODATA || rc == -ENXIO)
		return 0;
	if (!rc)
		take(own ? &own->plan : &p->picture->plan, out);
	glibc_picture_free(own);
	return rc;
}
