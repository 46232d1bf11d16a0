// SPDX-License-Identifier: GPL-3.0-or-later
/* What malloc_info and malloc_stats print, from a target or from a file of anybody's. */
#include <stdlib.h>
#include <string.h>

#include "../../agent/glibc_info_xml.h"
#include "../../agent/glibc_stats.h"
#include "fuzz.h"

const char fuzz_name[] = "mallocinfo";

static void check(struct glibc_info *i)
{
	FUZZ_CHECK(i->arenas > 0 && i->arenas <= GLIBC_INFO_ARENAS);
	for (size_t k = 0; k < i->arenas; k++) {
		const struct info_arena *a = &i->arena[k];

		if (a->free > a->system)
			FUZZ_CHECK(a->flags & INFO_FREE_OVER_SYSTEM);
		FUZZ_CHECK(a->fast <= a->free || a->flags);
	}
	for (unsigned bit = 1; bit <= i->total.flags; bit *= 2)
		if (i->total.flags & bit)
			FUZZ_CHECK(info_flag_name(bit)[0]);
	glibc_info_free(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct glibc_info i;
	struct diag d;

	diag_clear(&d);
	if (glibc_info_parse(text, size, &i, &d) == 0)
		check(&i);
	else
		fuzz_diag(&d);
	if (glibc_stats_parse(text, size, &i) == 0)
		check(&i);
	free(text);
	return 0;
}
