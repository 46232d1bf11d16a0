// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OWNERS_KIND_H
#define HM_OWNERS_KIND_H
#include "owners.h"

/* Mappings that follow each other without a gap. */
struct owner_run {
	bool on;
	uint64_t end;
};

/*
 * Pure: fills owner, basis and kind of p, a piece that stands for the whole of row, by what the
 * mapping itself says. go is kept from row to row.
 */
void owner_of_row(const struct smaps_row *row, const struct owner_facts *f, struct owner_run *go,
		  struct piece *p);
/* Pure: what nobody has claimed, by its neighbours and by who is left (f->reserver, f->rest). */
void owner_of_rest(struct owners *o, const struct owner_facts *f);
#endif
