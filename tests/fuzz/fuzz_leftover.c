// SPDX-License-Identifier: GPL-3.0-or-later
/* Mappings that look like regions of ours, which a hostile target can make as it likes. The input
 * is the text of maps (2 bytes of length before it), then memory. */
#include <sys/stat.h>

#include "../../inject/clock.h"
#include "../../inject/leftover.h"
#include "../../inject/region.h"
#include "fuzz.h"

const char fuzz_name[] = "leftover";

/* ---- in place of inject/clock.c: what waits for something waits no time here */
static uint64_t now;

uint64_t clock_now(void)
{
	return now;
}

void clock_sleep(uint64_t ns)
{
	now += ns;
}

/* One thread, outside of all regions. */
static void make_thread(void)
{
	static const char stat[] = "7 (x) S 1 7 7 0 -1 0 5 0 0 0 0 0 0 0 20 0 1 0 99 0 0";
	static const char status[] = "State:\tS\nTgid:\t7\nPid:\t7\n";
	static bool made;

	if (made)
		return;
	made = true;
	FUZZ_CHECK(mkdirat(fuzz_procfd(), "task", 0700) == 0);
	FUZZ_CHECK(mkdirat(fuzz_procfd(), "task/7", 0700) == 0);
	fuzz_proc_file("task/7/stat", stat, sizeof(stat) - 1);
	fuzz_proc_file("task/7/status", status, sizeof(status) - 1);
	fuzz_proc_file("task/7/syscall", "0 0 0 0 0 0 0 7fff0000 400000\n", 30);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct target t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd(), .comm = "x" };
	struct hm_range range[HM_MAX_REAP];
	struct leftovers left;
	struct maps maps;
	size_t len, n = 0;
	const uint8_t *p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 2), &len);

	if (maps_parse((const char *)p, len, &maps))
		return 0;
	make_thread();
	fuzz_memory(&in);
	if (leftover_find(&t, &maps, range, HM_MAX_REAP, &n, &left) == 0) {
		FUZZ_CHECK(n <= HM_MAX_REAP && left.regions + left.busy <= maps.n);
		for (size_t i = 0; i < n; i++)
			FUZZ_CHECK(range[i].len && range[i].addr + range[i].len > range[i].addr);
	}
	maps_free(&maps);
	return 0;
}
