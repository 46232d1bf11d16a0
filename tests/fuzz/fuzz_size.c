// SPDX-License-Identifier: GPL-3.0-or-later
/* Sizes and times as people type them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/size.h"
#include "fuzz.h"

const char fuzz_name[] = "size";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), buf[SIZE_TEXT];
	uint64_t v = 0, again;
	struct diag d;
	int rc = size_parse(text, &v);

	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	if (rc == 0)
		FUZZ_CHECK(size_parse(size_format_fine(v, buf), &again) == 0 || v >> 60);
	size_format(v, buf);
	size_format_delta((int64_t)v, buf);
	diag_clear(&d);
	if (size_parse_arg("PAD", text, &v, &d))
		fuzz_diag(&d);
	rc = time_parse(text, &v);
	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	FUZZ_CHECK(strlen(time_format(v, buf)) < SIZE_TEXT);
	if (time_parse_arg("--timeout", text, &v, &d))
		fuzz_diag(&d);
	free(text);
	return 0;
}
