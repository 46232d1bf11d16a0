// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * manylibs LIBRARY N: has N copies of a small library loaded, each a file of its own in a directory
 * that is removed at once, so that all are deleted files as after an upgrade; with "kept" they stay
 * until the end.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "victim.h"

static void *idle(void *arg)
{
	free(malloc(100));
	thread_started();
	for (;;)
		pause();
	return arg;
}

static void copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) || sendfile(out, in, NULL, (size_t)st.st_size) < 0)
		wrong("copying %s to %s: %s", from, to, strerror(errno));
	close(in);
	close(out);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/manylibs-XXXXXX", path[256];
	int n = argc > 2 ? atoi(argv[2]) : 0, kept = victim_option(argc, argv, "kept");
	pthread_t th;

	if (!n || !mkdtemp(dir))
		wrong("usage: manylibs LIBRARY N [kept]");
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/lib%d.so", dir, i);
		copy(argv[1], path);
		if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
			wrong("%s", dlerror());
		if (!kept)
			unlink(path);
	}
	for (int i = 0; i < 2; i++)
		if (pthread_create(&th, NULL, idle, NULL))
			wrong("no thread");
	wait_started(2);
	victim_ready();
	while (!victim_over(20))
		free(malloc(1000));
	for (int i = 0; kept && i < n; i++) {
		snprintf(path, sizeof(path), "%s/lib%d.so", dir, i);
		unlink(path);
	}
	rmdir(dir);
	return 0;
}
