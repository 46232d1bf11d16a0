// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SOCKET_WAIT_H
#define HM_SOCKET_WAIT_H
#include <stdbool.h>
#include <stdint.h>

#include "target.h"

/*
 * Does call nr on descriptor fd of the target wait for at most the time that the socket is set to
 * (SO_RCVTIMEO, SO_SNDTIMEO of socket(7))? Made again, it waits for all of it once more. There is
 * no way around that: the kernel takes the time from the socket alone, and a socket that was given
 * another one for a moment would keep it if we died in that moment.
 *
 * Looks at a duplicate of the descriptor (pidfd_getfd(2), Linux 5.6, needs the right to attach),
 * which is open for the one getsockopt(2) that it is for. What remains: a target that closes the
 * socket within these microseconds closes it when we do. Until then the other side sees no end of
 * it, and an epoll(7) set that it is in still reports it. False where it cannot be known.
 */
bool socket_wait_is_timed(const struct target *t, long nr, int fd);
#endif
