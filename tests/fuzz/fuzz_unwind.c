// SPDX-License-Identifier: GPL-3.0-or-later
/* Backtraces over the registers, the stack and the unwind tables that a target has. */
#include <string.h>

#include "../../inject/modules.h"
#include "../../inject/unwind.h"
#include "fuzz.h"

const char fuzz_name[] = "unwind";

#define START  0x400000ULL
#define END    0x404000ULL
#define HDR    0x402000ULL
#define FRAMES 64

static void registers(struct fuzz_input *in, struct user_regs_struct *r)
{
	memset(r, 0, sizeof(*r));
	r->rip = START + fuzz_number(in, 2);
	r->rsp = 0x7fff0000ULL + fuzz_number(in, 2);
	r->rbp = 0x7fff0000ULL + fuzz_number(in, 2);
	r->rbx = fuzz_number(in, 2);
}

static void check(const struct frame *v, size_t n, bool complete)
{
	FUZZ_CHECK(n <= FRAMES);
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(!complete || v[i].exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct module mod = { .path = (char *)"x",
			      .start = START,
			      .end = END,
			      .text_start = START,
			      .text_end = HDR,
			      .ro_start = START,
			      .ro_end = END,
			      .eh_frame_hdr = HDR };
	struct modules mods = { .v = &mod, .n = 1 };
	struct user_regs_struct regs;
	struct frame v[FRAMES];
	struct unwinder *u;
	bool complete;
	size_t n;

	registers(&in, &regs);
	fuzz_memory(&in);
	FUZZ_CHECK(unwinder_new(FUZZ_PID, &mods, &u) == 0);
	/* twice: the second time with what the first has cached */
	for (int i = 0; i < 2; i++)
		if (unwinder_run(u, &regs, v, FRAMES, &n, &complete) == 0)
			check(v, n, complete);
	unwinder_free(u);
	return 0;
}
