// SPDX-License-Identifier: GPL-3.0-or-later
#include "nap.h"

#include <poll.h>
#include <stdbool.h>

#include "../inject/clock.h"
#include "../inject/stray.h"
#include "signals.h"

#define STRAY_NS (20 * NS_PER_MS) /* how long such a thread waits at most */

/* The flags are looked at with signals blocked, so that none is missed (ppoll(2)). */
enum nap nap_until(uint64_t end, int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };
	enum nap why = NAP_OVER;
	sigset_t before;
	uint64_t now;

	signals_block(&before);
	while (why == NAP_OVER && (now = clock_now()) < end) {
		uint64_t left = end - now;
		struct timespec t;

		/* a thread that was stuck when it was asked to stop waits for us */
		if (stray_collect() && left > STRAY_NS)
			left = STRAY_NS;
		t = (struct timespec){ .tv_sec = (time_t)(left / NS_PER_SEC),
				       .tv_nsec = (long)(left % NS_PER_SEC) };
		if (*signals_cancel())
			why = NAP_CANCELLED;
		else if (ppoll(&fd, 1, &t, &before) > 0 && fd.revents)
			why = NAP_EXITED;
		if (signals_take_stop()) {
			signals_unblock(&before);
			signals_stop_self();
			signals_block(&before);
		}
	}
	signals_unblock(&before);
	return *signals_cancel() ? NAP_CANCELLED : why;
}
