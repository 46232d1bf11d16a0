// SPDX-License-Identifier: GPL-3.0-or-later
#include "nap.h"

#include <poll.h>
#include <stdbool.h>

#include "../inject/clock.h"
#include "../inject/stray.h"
#include "signals.h"

#define STRAY_NS (20 * NS_PER_MS) /* how long such a thread waits at most */

/* One wait with signals blocked, so that none is missed (ppoll(2)). True: there is something at fd.
 */
static bool wait_once(int fd, uint64_t left, const sigset_t *before, enum nap *why)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec t;
	bool there = false;

	/* a thread that was stuck when it was asked to stop waits for us */
	if (stray_collect() && left > STRAY_NS)
		left = STRAY_NS;
	t = (struct timespec){ .tv_sec = (time_t)(left / NS_PER_SEC),
			       .tv_nsec = (long)(left % NS_PER_SEC) };
	if (*signals_cancel())
		*why = NAP_CANCELLED;
	else
		there = ppoll(&p, 1, &t, before) > 0 && p.revents;
	if (signals_take_stop()) {
		signals_unblock(before);
		signals_stop_self();
		signals_block(NULL);
	}
	return there;
}

enum nap nap_until(uint64_t end, int pidfd)
{
	enum nap why = NAP_OVER;
	sigset_t before;
	uint64_t now;

	signals_block(&before);
	while (why == NAP_OVER && (now = clock_now()) < end)
		if (wait_once(pidfd, end - now, &before, &why))
			why = NAP_EXITED;
	signals_unblock(&before);
	return *signals_cancel() ? NAP_CANCELLED : why;
}

bool nap_input(int fd)
{
	enum nap why = NAP_OVER;
	sigset_t before;
	bool there = false;

	signals_block(&before);
	while (why == NAP_OVER && !there)
		there = wait_once(fd, NS_PER_SEC, &before, &why);
	signals_unblock(&before);
	return there;
}
