// SPDX-License-Identifier: GPL-3.0-or-later
/* A thread's seccomp filter: a classic BPF program of the target's choice. */
#include <string.h>

#include "../../inject/seccomp.h"
#include "fuzz.h"

const char fuzz_name[] = "seccomp";

#define INSNS 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sock_filter f[INSNS];
	struct fuzz_input in = { data, size };
	struct seccomp_data d = { .nr = (int)fuzz_number(&in, 2), .arch = 0xc000003e };
	uint32_t action = 0xdeadbeef, again = 0;
	size_t n = in.left / sizeof(*f);
	int rc;

	for (unsigned i = 0; i < 6; i++)
		d.args[i] = i * 0x100000001ULL;
	if (n > INSNS)
		n = INSNS;
	memcpy(f, in.p, n * sizeof(*f));
	rc = seccomp_run(f, n, &d, &action);
	FUZZ_CHECK(rc == 0 || rc < 0);
	if (rc == 0)
		FUZZ_CHECK(seccomp_run(f, n, &d, &again) == 0 && again == action);
	return 0;
}
