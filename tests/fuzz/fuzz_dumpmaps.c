// SPDX-License-Identifier: GPL-3.0-or-later
/* The mappings in a heap profile, which the target has written. */
#include <stdlib.h>
#include <string.h>

#include "../../agent/dump_maps.h"
#include "fuzz.h"

const char fuzz_name[] = "dumpmaps";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char own[] = "1000-3000 r-xp 00000000 08:01 7 /bin/x\n";
	uint64_t addr = 0x1234;
	size_t len = size, kept;
	char *text = fuzz_text(data, size);

	memcpy(&addr, data, size < sizeof(addr) ? size : sizeof(addr));
	(void)dump_maps_have(text, len, addr);
	if (dump_maps_put(&text, &len, own) == 0) {
		FUZZ_CHECK(text[len] == '\0');
		FUZZ_CHECK(len >= sizeof(own) - 1);
		FUZZ_CHECK(dump_maps_have(text, len, 0x2000));
		FUZZ_CHECK(!dump_maps_have(text, len, 0x3000));
		kept = len;
		/* what was put there is what is taken away */
		FUZZ_CHECK(dump_maps_put(&text, &len, own) == 0 && len == kept);
	}
	free(text);
	return 0;
}
