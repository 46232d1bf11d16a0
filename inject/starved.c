// SPDX-License-Identifier: GPL-3.0-or-later
#include "starved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

#define LINE_MAX_LEN 256

struct starved_thread {
	pid_t tid;
	uint64_t ran; /* see thread_cpu_time */
};

uint64_t thread_cpu_time(const struct target *t, pid_t tid)
{
	char path[48], *text;
	uint64_t ns;
	size_t len;

	snprintf(path, sizeof(path), "task/%d/schedstat", (int)tid);
	if (proc_read(t->procfd, path, LINE_MAX_LEN, &text, &len))
		return 0;
	ns = strtoull(text, NULL, 10);
	free(text);
	return ns;
}

int starved_note(const struct target *t, struct starved *s)
{
	struct threads list;
	int rc;

	memset(s, 0, sizeof(*s));
	rc = threads_read(t, &list, NULL);
	if (rc)
		return rc;
	s->v = calloc(list.n, sizeof(*s->v));
	for (size_t i = 0; i < list.n && s->v; i++) {
		pid_t tid = list.v[i].tid;

		if (list.v[i].state == 'R')
			s->v[s->n++] = (struct starved_thread){ tid, thread_cpu_time(t, tid) };
	}
	threads_free(&list);
	return s->v ? 0 : -ENOMEM;
}

bool starved_any(const struct target *t, const struct starved *s, uint64_t ns)
{
	for (size_t i = 0; i < s->n; i++) {
		struct thread th;

		if (thread_read(t, s->v[i].tid, &th) == 0 && th.state == 'R' &&
		    thread_cpu_time(t, th.tid) - s->v[i].ran <= ns)
			return true;
	}
	return false;
}

void starved_free(struct starved *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}
