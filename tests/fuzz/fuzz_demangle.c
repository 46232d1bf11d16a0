// SPDX-License-Identifier: GPL-3.0-or-later
/* A mangled name, whole and into little room. */
#include <stdlib.h>
#include <string.h>

#include "../../agent/demangle.h"
#include "fuzz.h"

const char fuzz_name[] = "demangle";

static void check(const char *name, bool brief, size_t room)
{
	char *buf = malloc(room);

	FUZZ_CHECK(buf != NULL);
	if (!demangle(name, brief, buf, room))
		FUZZ_CHECK(!strncmp(buf, name, room - 1));
	FUZZ_CHECK(memchr(buf, 0, room) != NULL);
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = fuzz_text(data, size);

	check(name, false, 4096);
	check(name, true, 4096);
	check(name, false, 1 + size % 40);
	free(name);
	return 0;
}
