// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_fault.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* what: what is at the address; the text has value and want in it as far as it needs them. */
static const struct {
	const char *name, *what, *text;
	bool value, want;
} kinds[] = {
	[FAULT_NONE] = { "none", "", "nothing is wrong", false, false },
	[FAULT_RING] = { "arena-ring", "at", "its link to the next arena leads to 0x%" PRIx64, true,
			 false },
	[FAULT_HEAP] = { "heap-info", "heap", "its heap_info says 0x%" PRIx64, true, false },
	[FAULT_TOP] = { "top", "at",
			"its top chunk is said to be at 0x%" PRIx64 ", in none of its heaps", true,
			false },
	[FAULT_TOP_SIZE] = { "top-size", "top chunk", "impossible size 0x%" PRIx64, true, false },
	[FAULT_LINK] = { "list-link", "chunk", "linked to 0x%" PRIx64 ", where no chunk can be",
			 true, false },
	[FAULT_LIST] = { "list-broken", "chunk", "linked back to 0x%" PRIx64 ", not to 0x%" PRIx64,
			 true, true },
	[FAULT_SIZE] = { "chunk-size", "chunk", "impossible size 0x%" PRIx64, true, false },
	[FAULT_BIN] = { "wrong-bin", "chunk", "its size 0x%" PRIx64 " is not that of this list",
			true, false },
	[FAULT_PREV_SIZE] = { "prev-size", "chunk",
			      "it says 0x%" PRIx64 " of the free chunk before it, not 0x%" PRIx64,
			      true, true },
	[FAULT_NEXTSIZE] = { "size-ring", "chunk",
			     "its ring of sizes leads to 0x%" PRIx64 " and not back", true, false },
	[FAULT_FASTBIN] = { "fastbin", "entry",
			    "linked to 0x%" PRIx64 ", no chunk of this list's size", true, false },
	[FAULT_LOOP] = { "list-loop", "entry", "the list comes here again and again", false,
			 false },
	[FAULT_TCACHE] = { "thread-cache", "entry",
			   "linked to 0x%" PRIx64 ", no chunk of this list's size", true, false },
};

static const char *const places[] = {
	[PLACE_RING] = "ring", [PLACE_HEAPS] = "heaps", [PLACE_FASTBIN] = "fastbin",
	[PLACE_BIN] = "bin",   [PLACE_CHUNKS] = "heap", [PLACE_TCACHE] = "thread cache list",
};

const char *glibc_fault_name(enum glibc_fault_kind kind)
{
	return kinds[kind].name;
}

/* The formats are this file's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
const char *glibc_fault_text(const struct glibc_fault *f, char *buf, size_t size)
{
	if (kinds[f->kind].want)
		snprintf(buf, size, kinds[f->kind].text, f->value, f->want);
	else if (kinds[f->kind].value)
		snprintf(buf, size, kinds[f->kind].text, f->value);
	else
		snprintf(buf, size, "%s", kinds[f->kind].text);
	return buf;
}
#pragma GCC diagnostic pop

const char *glibc_fault_where(const struct glibc_fault *f, char *buf, size_t size)
{
	bool list = f->place != PLACE_RING && f->place != PLACE_HEAPS;

	if (list)
		snprintf(buf, size, "arena %u, %s %u, %s 0x%" PRIx64, f->arena, places[f->place],
			 f->index, kinds[f->kind].what, f->at);
	else
		snprintf(buf, size, "arena %u, %s 0x%" PRIx64, f->arena, kinds[f->kind].what,
			 f->at);
	return buf;
}
