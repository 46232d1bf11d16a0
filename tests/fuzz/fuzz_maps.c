// SPDX-License-Identifier: GPL-3.0-or-later
/* /proc/PID/maps, whose names the target chooses. */
#include <stdlib.h>
#include <string.h>

#include "../../inject/maps.h"
#include "../../inject/region.h"
#include "fuzz.h"

const char fuzz_name[] = "maps";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct maps m;

	if (maps_parse(text, size, &m) == 0) {
		for (size_t i = 0; i < m.n; i++) {
			const struct map *p = &m.v[i];
			uint64_t base;

			FUZZ_CHECK(p->start < p->end && (!i || p[-1].end <= p->start));
			FUZZ_CHECK(maps_find(&m, p->start) == p);
			FUZZ_CHECK(maps_find(&m, p->end - 1) == p);
			FUZZ_CHECK(p->name >= m.text && p->name + strlen(p->name) <= m.text + size);
			FUZZ_CHECK(!map_is_anon(p) || !p->inode);
			if (region_owns(p, &base))
				FUZZ_CHECK(map_is_anon(p) && base <= p->start);
		}
		maps_free(&m);
	}
	free(text);
	return 0;
}
