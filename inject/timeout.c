// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeout.h"

#include <string.h>
#include <sys/syscall.h>

#include "clock.h"

/* Younger than the headers of the oldest system that we build on. */
#define NR_EPOLL_PWAIT2 441

/* include/uapi/linux/io_uring.h: flags of io_uring_enter(2), its argument 3 */
#define RING_EXT_ARG	 8U
#define RING_ABS_TIMER	 32U
#define RING_EXT_ARG_REG 64U

/* "heapwait" */
#define NOTE_MAGIC 0x7469617770616568ULL

#define TAG	  0xa5U
#define TAG_SHIFT 56
#define UNIT	  65536ULL /* ns */
#define UNITS	  (1ULL << 24)
/* An end may lie this far in the past: the thread had no CPU meanwhile. The rest is the future. */
#define PAST_UNITS (10 * NS_PER_SEC / UNIT)

_Static_assert(sizeof(struct timeout_note) + 8 <= ARCH_RED_ZONE, "it must fit");

static const struct {
	long nr;
	enum timeout_form form;
	unsigned arg;
} timeouts[] = {
	{ SYS_epoll_wait, TIMEOUT_MS, 3 },	    { SYS_epoll_pwait, TIMEOUT_MS, 3 },
	{ NR_EPOLL_PWAIT2, TIMEOUT_TIMESPEC, 3 },   { SYS_rt_sigtimedwait, TIMEOUT_TIMESPEC, 2 },
	{ SYS_semtimedop, TIMEOUT_TIMESPEC, 3 },    { SYS_io_getevents, TIMEOUT_TIMESPEC, 4 },
	{ SYS_io_pgetevents, TIMEOUT_TIMESPEC, 4 }, { SYS_io_uring_enter, TIMEOUT_RING, 4 },
	{ SYS_ppoll, TIMEOUT_WRITTEN, 2 },	    { SYS_pselect6, TIMEOUT_WRITTEN, 4 },
};

static bool ring_is_relative(const uint64_t arg[6])
{
	return (arg[3] & RING_EXT_ARG) && !(arg[3] & (RING_ABS_TIMER | RING_EXT_ARG_REG)) &&
	       arg[5] == sizeof(((struct timeout_note *)0)->ring);
}

enum timeout_form timeout_form(long nr, const uint64_t arg[6], unsigned *which)
{
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		enum timeout_form form = timeouts[i].form;
		uint64_t v = arg[timeouts[i].arg];

		if (timeouts[i].nr != nr)
			continue;
		*which = timeouts[i].arg;
		if (form == TIMEOUT_MS)
			return (int)v > 0 ? form : TIMEOUT_NONE;
		if (!v || (form == TIMEOUT_RING && !ring_is_relative(arg)))
			return TIMEOUT_NONE;
		return form;
	}
	return TIMEOUT_NONE;
}

/* sock_rcvtimeo and sock_sndtimeo of the kernel are asked at the start of each of these. */
bool timeout_of_socket(long nr)
{
	static const long calls[] = { SYS_read,	    SYS_readv,	 SYS_write,    SYS_writev,
				      SYS_accept,   SYS_accept4, SYS_recvfrom, SYS_recvmsg,
				      SYS_recvmmsg, SYS_sendto,	 SYS_sendmsg,  SYS_sendmmsg };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i] == nr)
			return true;
	return false;
}

uint64_t timeout_ns(const struct timeout_timespec *ts)
{
	if (ts->sec < 0 || ts->nsec < 0 || ts->nsec >= (int64_t)NS_PER_SEC)
		return 0;
	if (ts->sec >= INT64_MAX / (int64_t)NS_PER_SEC)
		return INT64_MAX;
	return (uint64_t)ts->sec * NS_PER_SEC + (uint64_t)ts->nsec;
}

uint64_t timeout_tag(uint32_t ms, uint64_t end_ns, uint64_t now_ns)
{
	uint64_t unit = end_ns / UNIT + 1; /* rounded up: never early */

	if (end_ns > now_ns && unit - now_ns / UNIT >= UNITS - PAST_UNITS)
		return ms;
	return (uint64_t)TAG << TAG_SHIFT | unit % UNITS << 32 | ms;
}

bool timeout_tagged(uint64_t reg, uint64_t now_ns, uint64_t *end_ns)
{
	uint64_t from, ahead;
	int ms = (int)(uint32_t)reg;

	if (reg >> TAG_SHIFT != TAG || ms < 0 || now_ns / UNIT < PAST_UNITS)
		return false;
	from = now_ns / UNIT - PAST_UNITS;
	ahead = ((reg >> 32) - from) % UNITS;
	*end_ns = (from + ahead) * UNIT;
	/* when it was written, ms was what was left, rounded up */
	return *end_ns <= now_ns + (unsigned)ms * NS_PER_MS + 2 * UNIT;
}

uint64_t timeout_note_addr(uint64_t sp)
{
	return (sp - ARCH_RED_ZONE + 7) & ~(uint64_t)7;
}

uint64_t timeout_note_arg(uint64_t note_addr, enum timeout_form form)
{
	return note_addr + (form == TIMEOUT_RING ? offsetof(struct timeout_note, ring)
						 : offsetof(struct timeout_note, left));
}

void timeout_note_fill(struct timeout_note *n, uint64_t note_addr, long nr, uint64_t arg,
		       uint64_t end_ns, uint64_t left_ns, const uint64_t ring[3])
{
	*n = (struct timeout_note){
		.magic = NOTE_MAGIC ^ end_ns,
		.nr = (uint64_t)nr,
		.arg = arg,
		.end_ns = end_ns,
		.left = { (int64_t)(left_ns / NS_PER_SEC), (int64_t)(left_ns % NS_PER_SEC) },
	};
	memcpy(n->ring, ring, sizeof(n->ring));
	n->ring[2] = note_addr + offsetof(struct timeout_note, left);
}

bool timeout_note_valid(const struct timeout_note *n, long nr)
{
	return n->magic == (NOTE_MAGIC ^ n->end_ns) && n->nr == (uint64_t)nr;
}
