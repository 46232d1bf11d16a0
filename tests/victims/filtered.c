// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * filtered kill|errno: two threads under a seccomp filter that answers memfd_create(2) by killing
 * the process, or with EPERM. Nobody here calls it.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "victim.h"

static void filter(uint32_t answer)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(*f), f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		wrong("seccomp: %s", strerror(errno));
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t th;

	filter(victim_option(argc, argv, "kill") ? SECCOMP_RET_KILL_PROCESS
						 : SECCOMP_RET_ERRNO | EPERM);
	free(malloc(100));
	if (pthread_create(&th, NULL, idle, NULL))
		wrong("no thread");
	victim_ready();
	while (!victim_over(20))
		free(malloc(1000));
	return 0;
}
