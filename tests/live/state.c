// SPDX-License-Identifier: GPL-3.0-or-later
#include "state.h"
#include "victim.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "heapmedic"
/* Where its regions lie (inject/region.c): 2^43 addresses of which a region takes 2^22. */
#define OUR_AREA   (0x600000000000ull >> 43)
#define OUR_REGION 22

/* ---- threads and signals */

struct thread_status {
	char name[32];
	char state;
	long tracer;
	uint64_t blocked, ignored, caught;
};

static FILE *proc_file(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return fopen(path, "re");
}

/* False if the thread has ended. */
static bool thread_read(pid_t pid, pid_t tid, struct thread_status *s)
{
	char file[48], line[512];
	FILE *f;

	memset(s, 0, sizeof(*s));
	snprintf(file, sizeof(file), "task/%d/status", tid);
	f = proc_file(pid, file);
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Name: %31s", s->name);
		sscanf(line, "State: %c", &s->state);
		sscanf(line, "TracerPid: %ld", &s->tracer);
		sscanf(line, "SigBlk: %lx", &s->blocked);
		sscanf(line, "SigIgn: %lx", &s->ignored);
		sscanf(line, "SigCgt: %lx", &s->caught);
	}
	if (f)
		fclose(f);
	return s->state && s->state != 'X' && s->state != 'Z';
}

static void look_at_threads(pid_t pid, struct state *s)
{
	pid_t tid[STATE_MAX];
	size_t n = proc_tids(pid, tid, STATE_MAX);

	for (size_t i = 0; i < n; i++) {
		struct thread_status t;

		if (!thread_read(pid, tid[i], &t))
			continue;
		if (t.tracer || t.state == 'T' || t.state == 't')
			s->halted = tid[i];
		s->ignored = t.ignored;
		s->caught = t.caught;
		if (!strcmp(t.name, NAME)) {
			if (!s->our_threads++)
				s->our_tid = tid[i];
		} else {
			s->thread[s->threads++] =
				(struct thread_state){ .tid = tid[i], .blocked = t.blocked };
		}
	}
}

/* ---- descriptors */

static void look_at_fds(pid_t pid, struct state *s)
{
	char path[64];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	cr_assert_not_null(dir, "%s: %s", path, strerror(errno));
	s->fds = s->our_fds = 0;
	while ((e = readdir(dir))) {
		char link[64] = "";

		if (e->d_name[0] == '.')
			continue;
		s->fds++;
		if (readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1) > 0)
			s->our_fds += strstr(link, "memfd:" NAME) != NULL;
	}
	closedir(dir);
}

/* ---- mappings */

struct mapping {
	uint64_t start, end;
	unsigned long inode;
	char perm[5];
	char name[PATH_MAX + 16];
};

static bool mapping_parse(const char *line, struct mapping *m)
{
	memset(m, 0, sizeof(*m));
	return sscanf(line, "%lx-%lx %4s %*s %*s %lu %4111[^\n]", &m->start, &m->end, m->perm,
		      &m->inode, m->name) >= 4;
}

/* By its name or, where the kernel gives none, by where it lies. A victim's own files may lie in a
 * directory of that name. */
static bool is_ours(const struct mapping *m)
{
	return (m->inode == 0 && (strstr(m->name, NAME) || m->start >> 43 == OUR_AREA)) ||
	       strstr(m->name, "memfd:" NAME);
}

static bool is_heap(const struct mapping *m)
{
	if (!strcmp(m->name, "[heap]"))
		return true;
	return m->inode == 0 && m->name[0] == '\0' &&
	       (!strcmp(m->perm, "rw-p") || !strcmp(m->perm, "---p"));
}

static void append(char *text, size_t *len, const char *line)
{
	size_t n = strlen(line);

	cr_assert_lt(*len + n, STATE_MAPPINGS, "the victim has very many mappings");
	memcpy(text + *len, line, n + 1);
	*len += n;
}

/* Ranges that touch are one: glibc moves the border between what is usable and what is reserved. */
static void append_heap(struct state *s, size_t *len, size_t *last, const struct mapping *m)
{
	uint64_t start = m->start, end = m->end, before_start, before_end;
	bool brk = m->name[0] != '\0';
	char line[64];

	if (!brk && sscanf(s->heap + *last, "%lx-%lx", &before_start, &before_end) == 2 &&
	    before_end == start) {
		start = before_start;
		*len = *last;
	}
	*last = *len;
	snprintf(line, sizeof(line), brk ? "%lx [heap]\n" : "%lx-%lx\n", start, end);
	append(s->heap, len, line);
}

static void look_at_mappings(pid_t pid, struct state *s)
{
	size_t len = 0, heap_len = 0, heap_last = 0;
	uint64_t region = 0;
	FILE *f = proc_file(pid, "maps");
	char line[PATH_MAX + 128];
	struct mapping m;

	cr_assert_not_null(f, "the maps of %d: %s", pid, strerror(errno));
	s->mappings[0] = s->heap[0] = '\0';
	s->our_regions = 0;
	while (fgets(line, sizeof(line), f) && mapping_parse(line, &m)) {
		if (is_ours(&m)) {
			s->our_regions += m.start >> OUR_REGION != region;
			region = m.start >> OUR_REGION;
		} else if (is_heap(&m)) {
			append_heap(s, &heap_len, &heap_last, &m);
		} else {
			append(s->mappings, &len, line);
		}
	}
	fclose(f);
}

/* Which line of one text is not in the other, at the same place. */
static void first_difference(const char *a, const char *b, char *why, size_t size)
{
	while (*a && *b) {
		size_t m = strcspn(a, "\n"), n = strcspn(b, "\n");

		if (m != n || strncmp(a, b, m) != 0)
			break;
		a += m + 1;
		b += n + 1;
	}
	snprintf(why, size, "where it had mapped %.*s, there is now %.*s", (int)strcspn(a, "\n"), a,
		 (int)strcspn(b, "\n"), b);
}

/* ---- both together */

void state_look(const struct victim *v, struct state *s)
{
	memset(s, 0, offsetof(struct state, mappings));
	s->our_threads = 0;
	s->our_tid = s->halted = 0;
	look_at_threads(v->pid, s);
	look_at_fds(v->pid, s);
	look_at_mappings(v->pid, s);
}

void state_take(const struct victim *v, struct state *s)
{
	state_look(v, s);
	/* A victim's own, short-lived ones must not get into what others are compared with. */
	for (int i = 0; i < 4; i++) {
		size_t n = s->fds;

		sleep_ns(1000000);
		look_at_fds(v->pid, s);
		s->fds = n < s->fds ? n : s->fds;
		/* nor what a thread blocks only while its handler runs */
		for (size_t k = 0; k < s->threads; k++) {
			struct thread_status t;

			if (thread_read(v->pid, s->thread[k].tid, &t))
				s->thread[k].blocked &= t.blocked;
		}
	}
}

static bool threads_differ(const struct state *a, const struct state *b, bool masks, char *why,
			   size_t size)
{
	if (a->threads != b->threads) {
		snprintf(why, size, "it had %zu threads, now %zu", a->threads, b->threads);
		return true;
	}
	for (size_t i = 0; i < a->threads; i++) {
		const struct thread_state *s = &a->thread[i], *t = &b->thread[i];

		if (s->tid == t->tid && (!masks || s->blocked == t->blocked))
			continue;
		snprintf(why, size, "thread %d, which blocked %#lx, is now %d and blocks %#lx",
			 s->tid, s->blocked, t->tid, t->blocked);
		return true;
	}
	return false;
}

/* What must be right at once. */
static bool threads_and_signals_differ(const struct state *a, const struct state *b,
				       enum state_freedom freedom, char *why, size_t size)
{
	if (b->halted) {
		snprintf(why, size, "thread %d is traced or stopped", b->halted);
		return true;
	}
	if (!(freedom & STATE_THREADS_VARY) &&
	    threads_differ(a, b, !(freedom & STATE_MASKS_VARY), why, size))
		return true;
	if (a->ignored == b->ignored && a->caught == b->caught)
		return false;
	snprintf(why, size, "it ignored %#lx and caught %#lx, now %#lx and %#lx", a->ignored,
		 a->caught, b->ignored, b->caught);
	return true;
}

/* What a victim may change for a moment. */
static bool resources_differ(const struct state *a, const struct state *b,
			     enum state_freedom freedom, char *why, size_t size)
{
	if (a->fds != b->fds || b->our_fds) {
		snprintf(why, size, "it had %zu descriptors, now %zu (ours: %zu)", a->fds, b->fds,
			 b->our_fds);
		return true;
	}
	if (freedom & (STATE_THREADS_VARY | STATE_MAPPINGS_VARY))
		return false;
	if (strcmp(a->mappings, b->mappings) != 0) {
		first_difference(a->mappings, b->mappings, why, size);
		return true;
	}
	if ((freedom & STATE_HEAP_STILL) && strcmp(a->heap, b->heap) != 0) {
		first_difference(a->heap, b->heap, why, size);
		return true;
	}
	return false;
}

bool state_differs(const struct state *before, const struct state *now, enum state_freedom freedom,
		   char *why, size_t size)
{
	return threads_and_signals_differ(before, now, freedom, why, size) ||
	       resources_differ(before, now, freedom, why, size);
}

void state_same(const struct victim *v, const struct state *before, enum state_freedom freedom)
{
	static struct state now;
	char why[512] = "";

	state_take(v, &now);
	cr_assert_eq(now.our_threads, 0, "thread %d of heapmedic is left", now.our_tid);
	cr_assert_eq(now.our_regions, 0, "%zu regions of heapmedic are left", now.our_regions);
	cr_assert(!threads_and_signals_differ(before, &now, freedom, why, sizeof(why)), "%s", why);
	for (int i = 0; resources_differ(before, &now, freedom, why, sizeof(why)) && i < 400; i++) {
		sleep_ns(5000000);
		state_look(v, &now);
	}
	cr_assert(!resources_differ(before, &now, freedom, why, sizeof(why)), "%s", why);
}

/* A proxy that nobody has opened leaves by itself after some seconds. */
void state_await_threads(const struct victim *v, size_t n)
{
	pid_t tid[STATE_MAX];
	size_t now = 0;

	for (int i = 0; i < 500; i++) {
		now = proc_tids(v->pid, tid, STATE_MAX);
		if (now == n)
			return;
		sleep_ns(10000000);
	}
	cr_assert_fail("5 s after the last kill there are %zu threads, not %zu", now, n);
}
