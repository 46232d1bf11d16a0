// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * single [busy] [eintr]: one thread that sleeps, allocates and checks what it allocated; busy, it
 * never sleeps. It keeps some 40 MB of free memory under a pin.
 */
#include "victim.h"

enum { BLOCKS = 2500, SIZE = 16000, SLOTS = 64 };

struct slot {
	unsigned char *p;
	size_t n;
	unsigned char fill;
};

static unsigned next_random(unsigned *state)
{
	*state = *state * 1103515245u + 12345u;
	return *state >> 8;
}

static void check_slot(const struct slot *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i] != s->fill)
			wrong("byte %u of a block of %u has changed", (unsigned)i, (unsigned)s->n);
}

static void churn(struct slot *slots, unsigned *state)
{
	struct slot *s = &slots[next_random(state) % SLOTS];

	if (s->p)
		check_slot(s);
	free(s->p);
	s->n = 1 + next_random(state) % 3000;
	s->fill = (unsigned char)next_random(state);
	s->p = malloc(s->n);
	if (!s->p)
		wrong("no memory");
	memset(s->p, s->fill, s->n);
}

static void retain(void)
{
	static void *block[BLOCKS];
	static void *volatile pin;

	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(SIZE);
		if (!block[i])
			wrong("no memory");
		memset(block[i], i, SIZE);
	}
	pin = malloc(64);
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	(void)pin;
}

int main(int argc, char **argv)
{
	static struct slot slots[SLOTS];
	unsigned state = 1;
	int busy = victim_option(argc, argv, "busy");

	victim_eintr = victim_option(argc, argv, "eintr");
	retain();
	victim_ready();
	while (!victim_over(0)) {
		struct timespec nap = { .tv_nsec = 2 * MS };
		uint64_t start = now_ns();

		for (int i = 0; i < 200; i++)
			churn(slots, &state);
		if (busy)
			continue;
		start = now_ns();
		if (nanosleep(&nap, NULL)) {
			if (forgive_eintr())
				continue;
			wrong("nanosleep: %s", strerror(errno));
		}
		check_wait("nanosleep", start, 2);
	}
	return 0;
}
