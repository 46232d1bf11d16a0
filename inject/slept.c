// SPDX-License-Identifier: GPL-3.0-or-later
#include "slept.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "target.h"

#define SCHED_MAX ((size_t)16 * 1024)
/* The clocks of two readings are close, not equal: what we take for slept must not be more than it
 * was. */
#define MARGIN_NS 500000ULL

static const char *value_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	at = at ? strchr(at, ':') : NULL;
	return at ? at + 1 : NULL;
}

int slept_parse(const char *text, uint64_t *exec_start_ns, uint64_t *switches)
{
	const char *start = value_of(text, "se.exec_start");
	const char *count = value_of(text, "nr_voluntary_switches");
	unsigned long long ms, ns, n;

	/* the kernel prints nanoseconds as milliseconds with six decimals */
	if (!start || sscanf(start, " %llu.%6llu", &ms, &ns) != 2 || ms > UINT64_MAX / 1000000 - 1)
		return -EINVAL;
	if (!count || sscanf(count, " %llu", &n) != 1)
		return -EINVAL;
	*exec_start_ns = ms * 1000000 + ns;
	*switches = n;
	return 0;
}

static int read_sched(int procfd, pid_t tid, uint64_t *exec_start, uint64_t *switches)
{
	char path[48];
	char *text;
	size_t len;
	int rc;

	snprintf(path, sizeof(path), "task/%d/sched", tid);
	rc = proc_read(procfd, path, SCHED_MAX, &text, &len);
	if (rc)
		return rc;
	rc = slept_parse(text, exec_start, switches);
	free(text);
	return rc;
}

/* Field 39 of stat: the CPU it last ran on. */
static int cpu_of(int procfd, pid_t tid)
{
	char path[48];
	char *text, *at;
	size_t len;
	int cpu = -1;

	snprintf(path, sizeof(path), "task/%d/stat", tid);
	if (proc_read(procfd, path, SCHED_MAX, &text, &len))
		return -1;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	if (at)
		cpu = (int)strtol(at, NULL, 10);
	free(text);
	return cpu;
}

/* The time now in that CPU's clock: ours, after the scheduler has just brought it up to date. */
static uint64_t cpu_time(int cpu)
{
	uint64_t now = 0, ignored;
	cpu_set_t old, one;
	char *text;
	size_t len;

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(old), &old))
		return 0;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 0;
	sched_yield();
	if (proc_read(AT_FDCWD, "/proc/thread-self/sched", SCHED_MAX, &text, &len) == 0) {
		if (slept_parse(text, &now, &ignored))
			now = 0;
		free(text);
	}
	(void)!sched_setaffinity(0, sizeof(old), &old);
	return now;
}

void slept_measure(int procfd, pid_t tid, struct slept *out)
{
	uint64_t since, now;

	memset(out, 0, sizeof(*out));
	if (read_sched(procfd, tid, &since, &out->switches))
		return;
	now = cpu_time(cpu_of(procfd, tid));
	out->at = clock_now();
	if (now > since + MARGIN_NS)
		out->ns = now - since - MARGIN_NS;
}

uint64_t slept_until_stop(int procfd, pid_t tid, const struct slept *s, uint64_t stopped_at)
{
	uint64_t ignored, switches;

	if (!s->ns || read_sched(procfd, tid, &ignored, &switches))
		return 0;
	/* It gave up its CPU once, to stop. Others may have taken the CPU from it on its way there:
	 * that is not counted. */
	if (switches != s->switches + 1)
		return 0;
	return s->ns + (stopped_at > s->at ? stopped_at - s->at : 0);
}
