// SPDX-License-Identifier: GPL-3.0-or-later
/* The shell's history file, and where it is. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/history.h"
#include "fuzz.h"

const char fuzz_name[] = "history";

static void paths(const char *text)
{
	char buf[PATH_MAX], small[24];

	if (history_path(text, NULL, NULL, small, sizeof(small)))
		FUZZ_CHECK(!strcmp(small, text));
	if (history_path(NULL, text, NULL, buf, sizeof(buf)))
		FUZZ_CHECK(buf[0] == '/');
	if (history_path(NULL, NULL, text, buf, sizeof(buf)))
		FUZZ_CHECK(buf[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), path[96];
	struct history *h;

	paths(text);
	fuzz_proc_file("history", data, size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/history", fuzz_procfd());
	FUZZ_CHECK(setenv("HEAPMEDIC_HISTORY", path, 1) == 0);
	h = history_open();
	FUZZ_CHECK(h != NULL);
	history_remember(h, text);
	history_remember(h, "trim");
	history_close(h);
	free(text);
	return 0;
}
