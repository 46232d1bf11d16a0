// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROMPT_H
#define HM_PROMPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct prompt {
	const char *comm;
	pid_t pid;
	uint64_t rss; /* bytes, 0: not known */
	bool proxy;   /* a thread of ours waits in the target */
	bool saved;   /* it is a snapshot */
	bool ended;   /* it has exited, and what was seen last is looked at */
	bool color;
};

/*
 * "redis-server:4711 3.9G proxy> ". With color the name stands out; the sequences for that are
 * between RL_PROMPT_START_IGNORE and RL_PROMPT_END_IGNORE (\1, \2), so that readline does not count
 * them as columns. comm has no control characters. Pure.
 */
void prompt_format(const struct prompt *p, char *buf, size_t size);
#endif
