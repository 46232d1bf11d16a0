// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * limited WHAT: two threads that wait and some free memory, in a process at a limit of its own.
 * nproc: another user's, whose RLIMIT_NPROC is reached. as, data: what is mapped now is all there
 * may be. nofile: as many descriptors open as there may be, 40 of them. fewfiles: three. memlock:
 * what it maps from now on is locked (mlockall), and no more may be. locked: the same with room to
 * lock. plain: at no limit.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "victim.h"

#define LONELY_UID 61234

static void *idle(void *arg)
{
	free(malloc(100));
	thread_started();
	for (;;)
		pause();
	return arg;
}

static void limit(int resource, rlim_t most)
{
	struct rlimit r;

	if (getrlimit(resource, &r))
		wrong("getrlimit: %s", strerror(errno));
	r.rlim_cur = most;
	if (setrlimit(resource, &r))
		wrong("setrlimit: %s", strerror(errno));
}

/* kB of a line of /proc/self/status, in bytes */
static rlim_t status_bytes(const char *key)
{
	static char buf[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	const char *at;

	close(fd);
	buf[n < 0 ? 0 : n] = '\0';
	at = strstr(buf, key);
	if (!at)
		wrong("no %s in my status", key);
	return strtoull(at + strlen(key), NULL, 10) * 1024;
}

static void become_lonely(void)
{
	if (setgroups(0, NULL) || setresgid(LONELY_UID, LONELY_UID, LONELY_UID) ||
	    setresuid(LONELY_UID, LONELY_UID, LONELY_UID))
		wrong("setresuid: %s", strerror(errno));
}

static void use_descriptors(int n)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			wrong("open: %s", strerror(errno));
	} while (fd < n - 1);
	limit(RLIMIT_NOFILE, (rlim_t)n);
}

static void set_up(const char *what)
{
	if (!strcmp(what, "nproc")) {
		become_lonely();
		limit(RLIMIT_NPROC, 3);
	} else if (!strcmp(what, "as")) {
		limit(RLIMIT_AS, status_bytes("VmSize:") + 40960);
	} else if (!strcmp(what, "data")) {
		limit(RLIMIT_DATA, status_bytes("VmData:") + 40960);
	} else if (!strcmp(what, "nofile")) {
		use_descriptors(40);
	} else if (!strcmp(what, "fewfiles")) {
		limit(RLIMIT_NOFILE, 3);
	} else if (!strcmp(what, "locked") || !strcmp(what, "memlock")) {
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			wrong("mlockall: %s", strerror(errno));
		if (!strcmp(what, "memlock")) {
			limit(RLIMIT_MEMLOCK, status_bytes("VmLck:") + 40960);
			become_lonely();
		}
	} else if (!strcmp(what, "undumpable") || !strcmp(what, "changed")) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			wrong("setresuid: %s", strerror(errno));
		if (prctl(PR_SET_DUMPABLE, what[0] == 'u' ? 0 : prctl(PR_GET_DUMPABLE)))
			wrong("dumpable: %s", strerror(errno));
	} else if (strcmp(what, "plain")) {
		wrong("limited %s?", what);
	}
}

int main(int argc, char **argv)
{
	static char *kept[16];
	pthread_attr_t small;
	pthread_t th;

	if (argc != 2)
		wrong("usage: limited WHAT");
	for (int i = 0; i < 16; i++)
		memset(kept[i] = malloc(100000), i, 100000);
	for (int i = 0; i < 15; i++)
		free(kept[i]);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 131072);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&th, &small, idle, NULL))
			wrong("no thread");
	wait_started(2);
	set_up(argv[1]);
	victim_ready();
	while (!victim_over(20))
		free(malloc(1000));
	return 0;
}
