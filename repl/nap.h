// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_NAP_H
#define HM_NAP_H
#include <stdbool.h>
#include <stdint.h>

enum nap {
	NAP_OVER,      /* it is time */
	NAP_CANCELLED, /* Ctrl-C, SIGTERM or SIGHUP */
	NAP_EXITED,    /* the process has ended */
};

/*
 * Waits until clock_now is end, a signal ends the command, or the process of pidfd (-1: of none)
 * ends. Ctrl-Z stops us meanwhile, as it should.
 */
enum nap nap_until(uint64_t end, int pidfd);
/* The same until there is something to read at fd, or its end; false: a signal ends the command. */
bool nap_input(int fd);
#endif
