// SPDX-License-Identifier: GPL-3.0-or-later
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "../inject/status.h"
#include "pool.h"

static void read_boot(char *buf, size_t size)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f)
		return;
	if (fgets(buf, (int)size, f))
		buf[strcspn(buf, "\n")] = '\0';
	fclose(f);
}

static void describe(const struct process *p, struct snapshot *s)
{
	struct utsname u;

	clock_gettime(CLOCK_REALTIME, &s->time);
	snprintf(s->version, sizeof(s->version), "%s", HM_VERSION);
	if (uname(&u) == 0) {
		escape_copy(s->host, sizeof(s->host), u.nodename, strlen(u.nodename));
		snprintf(s->kernel, sizeof(s->kernel), "%.40s %.60s %.30s", u.sysname, u.release,
			 u.machine);
	}
	read_boot(s->boot, sizeof(s->boot));
	s->pid = p->t.pid;
	s->start_time = p->t.start_time;
	snprintf(s->comm, sizeof(s->comm), "%s", p->t.comm);
	s->allocs = p->allocs;
	for (size_t i = 0; i < s->allocs.n; i++)
		s->allocs.v[i].mod = NULL;
}

int snapshot_take(struct process *p, bool may_call, struct snapshot *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	describe(p, out);
	if (!allocators_get(&out->allocs, "glibc"))
		(void)glibc_arenas_none(p, &out->no_arenas);
	/* first, as the look may make a call, and then a thread of our own is there */
	err = thread_rows_read(p, &out->threads, d);
	if (err)
		return err;
	err = look_take(p, may_call, &out->look, d);
	if (err) {
		thread_rows_free(&out->threads);
		return err;
	}
	if (out->look.jemalloc_asked)
		err = jemalloc_arenas_read(p, out->look.jemalloc, &out->jemalloc_arenas, d);
	if (err) {
		thread_rows_free(&out->threads);
		look_free(&out->look);
		return err;
	}
	out->look.jemalloc = allocators_get(&out->allocs, "jemalloc");
	out->look.tcmalloc.a = allocators_get(&out->allocs, "tcmalloc");
	out->look.mimalloc.a = allocators_get(&out->allocs, "mimalloc");
	thread_rows_stacks(&out->threads, &out->look.memory.owners, out->pid);
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	thread_rows_free(&s->threads);
	glibc_arenas_free(&s->look.arenas);
	jemalloc_arenas_free(&s->jemalloc_arenas);
	look_free(&s->look);
	pool_free(s->pool);
	memset(s, 0, sizeof(*s));
}

bool snapshot_same_process(const struct snapshot *a, const struct snapshot *b)
{
	return a->pid == b->pid && a->start_time == b->start_time && !strcmp(a->boot, b->boot);
}
