// SPDX-License-Identifier: GPL-3.0-or-later
#include "last_look.h"

#include <stdlib.h>
#include <string.h>

#include "../agent/process.h"
#include "../agent/snapshot.h"
#include "../inject/clock.h"
#include "../inject/ending.h"

#define ALWAYS_NS  (100 * NS_PER_MS)
#define CHANGED_NS NS_PER_SEC
#define SHARE	   100 /* of the time is spent on it at most */

struct last_look {
	unsigned char *bytes; /* NULL: nothing was seen */
	size_t len;
	pid_t pid; /* of whom */
	uint64_t start_time;
	uint64_t at, cost;    /* CLOCK_MONOTONIC, and CPU time */
	struct snapshot seen; /* of bytes, once it has ended */
	bool decoded;
};

struct last_look *last_look_new(void)
{
	return calloc(1, sizeof(struct last_look));
}

static void forget(struct last_look *l)
{
	free(l->bytes);
	l->bytes = NULL;
	if (l->decoded)
		snapshot_free(&l->seen);
	l->decoded = false;
}

void last_look_free(struct last_look *l)
{
	if (l)
		forget(l);
	free(l);
}

static bool is_of(const struct last_look *l, const struct process *p)
{
	return l->bytes && l->pid == p->t.pid && l->start_time == p->t.start_time;
}

static int encode(struct context *c, unsigned char **bytes, size_t *len)
{
	struct snapshot s;
	struct process *p;
	struct diag d;
	int err;

	diag_clear(&d);
	err = context_process(c, &p, &d);
	if (!err)
		err = snapshot_take(p, false, &s, &d);
	if (err)
		return err;
	err = snapshot_encode(&s, bytes, len);
	snapshot_free(&s);
	return err;
}

static bool is_due(const struct last_look *l, const struct context *c, uint64_t now)
{
	return !is_of(l, c->process) || l->cost <= (c->changed ? CHANGED_NS : ALWAYS_NS) ||
	       now - l->at >= l->cost * SHARE;
}

void last_look_take(struct last_look *l, struct context *c)
{
	uint64_t now = clock_now(), cpu = clock_cpu();
	unsigned char *bytes = NULL;
	size_t len = 0;

	if (!l || c->loaded || !c->process || !is_due(l, c, now) || encode(c, &bytes, &len))
		return;
	forget(l);
	l->bytes = bytes;
	l->len = len;
	l->pid = c->process->t.pid;
	l->start_time = c->process->t.start_time;
	l->at = now;
	l->cost = clock_cpu() - cpu;
	c->changed = false;
}

const char *last_look_time(const struct context *c, char *buf, size_t size)
{
	struct timespec t;
	struct tm tm;

	context_time(c, &t);
	if (!localtime_r(&t.tv_sec, &tm) || !strftime(buf, size, "%H:%M:%S", &tm))
		snprintf(buf, size, "some time");
	return buf;
}

/* What is left in a process that is no more cannot be wrong. */
static void close_process(struct context *c)
{
	char warn[256];
	struct diag d;

	diag_clear(&d);
	process_drop_session(c->process);
	(void)process_close(c->process, &d, warn, sizeof(warn));
	c->process = NULL;
}

static void say(struct context *c, const char *how)
{
	char at[32];

	context_note(c, "%s (pid %d) %s", c->comm, (int)c->pid, how);
	if (c->loaded)
		context_note(c,
			     "what was seen of it at %s is kept: diagnose, maps, arenas, threads, "
			     "facts and diff show that",
			     last_look_time(c, at, sizeof(at)));
	context_note(c, "`attach NAME|PID` goes on with another process");
}

void last_look_use(struct last_look *l, struct context *c)
{
	bool known;
	char how[80];
	struct diag d;
	int status;

	diag_clear(&d);
	known = ending_status(&c->process->t, &status);
	c->ended = true;
	if (l && is_of(l, c->process) &&
	    snapshot_decode(l->bytes, l->len, "the last look", &l->seen, &d) == 0) {
		l->decoded = true;
		c->loaded = &l->seen;
	}
	close_process(c);
	say(c, ending_text(known ? &status : NULL, how, sizeof(how)));
}
