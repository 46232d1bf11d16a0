// SPDX-License-Identifier: GPL-3.0-or-later
/* host [busy] [deep|apart] PLUGIN...: opens them, lets each keep 64 MiB in its own jemalloc, and
 * asks them again and again; busy: on the only thread, and mostly that. deep: each looks into
 * itself first (RTLD_DEEPBIND); apart: each in a namespace of its own. One that has none of its
 * functions is only opened. */
#include <dlfcn.h>
#include <pthread.h>

#include "../victim.h"

enum { MAX = 8 };

static void *idle(void *arg)
{
	free(malloc(100));
	thread_started();
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	int (*check[MAX])(void), (*churn[MAX])(void),
		n = 0, busy = victim_option(argc, argv, "busy"),
		deep = victim_option(argc, argv, "deep"),
		apart = victim_option(argc, argv, "apart"), first = 1 + busy + deep + apart;
	pthread_t t;

	for (int i = first; i < argc && i < MAX; i++) {
		int mode = RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0);
		void *p = apart ? dlmopen(LM_ID_NEWLM, argv[i], mode) : dlopen(argv[i], mode);
		int (*fill)(int);

		if (!p)
			wrong("%s", dlerror());
		*(void **)&fill = dlsym(p, "plugin_fill");
		*(void **)&check[n] = dlsym(p, "plugin_check");
		*(void **)&churn[n] = dlsym(p, "plugin_churn");
		if (fill && fill(64))
			wrong("%s has no memory", argv[i]);
		n += fill != NULL;
	}
	if (!busy && pthread_create(&t, NULL, idle, NULL))
		wrong("no thread");
	wait_started(!busy);
	victim_ready();
	while (!victim_over(busy ? 0 : 20))
		for (int i = 0; i < n; i++)
			if ((busy && churn[i]()) || check[i]())
				wrong("%s: its memory has changed", argv[first + i]);
	return 0;
}
