// SPDX-License-Identifier: GPL-3.0-or-later
#include "child.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLLS 20000 /* of a millisecond: only a broken test waits that long */

pid_t child_start(void (*fn)(void *), void *arg)
{
	pid_t parent = getpid(), pid = fork();

	cr_assert_geq(pid, 0, "fork failed");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	fn(arg);
	_exit(0);
}

void child_sleep(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static bool thread_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fread(buf, 1, size - 1, f);
	fclose(f);
	buf[n] = '\0';
	return true;
}

/* The thread's state, '\0' if it is gone. */
static char thread_state(pid_t pid, pid_t tid)
{
	char buf[1024];
	const char *p;

	if (!thread_file(pid, tid, "stat", buf, sizeof(buf)))
		return '\0';
	p = strrchr(buf, ')');
	return p && p[1] == ' ' ? p[2] : '\0';
}

static bool ended(char state)
{
	return state == '\0' || state == 'Z' || state == 'X';
}

bool child_reach(pid_t pid, pid_t tid, char state)
{
	for (int i = 0; i < POLLS; i++) {
		char now = thread_state(pid, tid);

		if (now == state || ended(now))
			return now == state;
		usleep(1000);
	}
	return false;
}

bool child_reach_call(pid_t pid, pid_t tid, long nr)
{
	char buf[1024];

	for (int i = 0; i < POLLS && !ended(thread_state(pid, tid)); i++) {
		char *end;

		if (thread_file(pid, tid, "syscall", buf, sizeof(buf)) &&
		    strtol(buf, &end, 10) == nr && end != buf)
			return true;
		usleep(1000);
	}
	return false;
}

bool child_reach_value(const volatile uint32_t *flag, uint32_t value)
{
	for (int i = 0; i < POLLS; i++) {
		if (__atomic_load_n(flag, __ATOMIC_SEQ_CST) >= value)
			return true;
		usleep(1000);
	}
	return false;
}

void *child_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) == pid) {
		/* a traced child reports its stops first */
		if (kill(pid, 0))
			break;
	}
}

void child_look(pid_t pid, struct target *t, struct maps *maps, struct modules *mods)
{
	struct diag d;

	diag_clear(&d);
	cr_assert_eq(target_open(pid, t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(t, maps, &d), 0, "%s", d.text);
	cr_assert_eq(modules_load(t, maps, mods, &d), 0, "%s", d.text);
}

void child_look_away(struct target *t, struct maps *maps, struct modules *mods)
{
	modules_free(mods);
	maps_free(maps);
	target_close(t);
}

char *fixture_read(const char *name, size_t *len)
{
	char path[256];
	char *buf = malloc(1 << 20);
	FILE *f;

	cr_assert_not_null(buf);
	snprintf(path, sizeof(path), "tests/fixtures/%s", name);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s is missing (tests run at the top of the tree)", path);
	*len = fread(buf, 1, (1 << 20) - 1, f);
	fclose(f);
	buf[*len] = '\0';
	return buf;
}

/* A small generator of its own: the same damage in every run. */
static uint32_t next(uint64_t *s)
{
	*s = *s * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*s >> 33);
}

static size_t damage(char *p, size_t len, uint64_t *s)
{
	static const char special[] = "\n :-()[]\\/0fZ\t\x7f\xff%s";

	for (uint32_t k = next(s) % 8 + 1; k-- > 0 && len;) {
		size_t at = next(s) % len;

		switch (next(s) % 4) {
		case 0:
			p[at] = (char)next(s);
			break;
		case 1:
			p[at] = special[next(s) % (sizeof(special) - 1)];
			break;
		case 2:
			len = at; /* cut */
			break;
		default: /* take a piece out */
			memmove(p + at, p + len - (len - at) / 2, (len - at) / 2);
			len = at + (len - at) / 2;
			break;
		}
	}
	return len;
}

void fuzz_text(const char *text, size_t len, unsigned n, void (*fn)(const char *text, size_t len))
{
	uint64_t seed = 42;
	char *work = malloc(len + 1);

	cr_assert_not_null(work);
	for (unsigned i = 0; i < n; i++) {
		size_t got;
		char *exact;

		memcpy(work, text, len);
		got = damage(work, len, &seed);
		exact = malloc(got + 1);
		cr_assert_not_null(exact);
		memcpy(exact, work, got);
		exact[got] = '\0';
		fn(exact, got);
		free(exact);
	}
	free(work);
}
