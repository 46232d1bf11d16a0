// SPDX-License-Identifier: GPL-3.0-or-later
#include "stray.h"

#include <string.h>

#include "clock.h"
#include "restart.h"
#include "wait.h"

/* How long one stays stopped at most before it is looked at. */
#define LOOK_EVERY (500 * 1000ULL)

static _Thread_local struct tracee stray[STRAY_MAX];
static _Thread_local size_t strays;

bool stray_room(void)
{
	return stray_collect() < STRAY_MAX;
}

static void collect(void)
{
	(void)stray_collect();
}

void stray_add(struct tracee *th)
{
	if (strays == STRAY_MAX)
		return;
	stray[strays++] = *th;
	th->seized = false;
	wait_meanwhile(collect);
}

/* The thread goes back to the call it was stopped in. */
static int let_go(struct tracee *th)
{
	arch_regs regs, back;
	int rc = tracee_regs(th, &regs);

	if (rc == 0) {
		restart_regs(&regs, 0, &back);
		if (memcmp(&regs, &back, sizeof(regs)) != 0)
			rc = tracee_set_regs(th, &back);
	}
	return rc ? rc : tracee_release(th);
}

size_t stray_collect(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < strays; i++) {
		struct tracee *th = &stray[i];
		int rc = th->stopped ? 0 : tracee_wait(th, 0, NULL);

		if (rc == 0)
			rc = let_go(th);
		if (rc && th->seized)
			stray[kept++] = *th;
	}
	strays = kept;
	if (!kept)
		wait_meanwhile(NULL);
	return kept;
}

void stray_sleep(uint64_t ns)
{
	const uint64_t until = clock_now() + ns;

	for (uint64_t now = until - ns; now < until; now = clock_now()) {
		uint64_t left = until - now;

		clock_sleep(stray_collect() && left > LOOK_EVERY ? LOOK_EVERY : left);
	}
}

void stray_settle(uint64_t limit_ns)
{
	const uint64_t until = clock_now() + limit_ns;

	while (stray_collect() && clock_now() < until)
		clock_sleep(LOOK_EVERY);
}
