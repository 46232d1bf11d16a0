// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * filtered CALL ACTION: three threads under a seccomp filter that answers one system call. Nobody
 * here makes that call once the filter is there. ACTION: errno, trap, trap-handled (there is a
 * handler of SIGSYS), kill-thread, kill, log.
 * filtered listed: nothing is allowed but what heapmedic asks a filter for, and what this program
 * itself does; anything else kills.
 * filtered wx: the filter of systemd's MemoryDenyWriteExecute=.
 * filtered mdwe|mdwe-no-inherit: the kernel's own (PR_SET_MDWE).
 * filtered CALL ACTION -- PROGRAM ARG...: becomes that program, under the filter.
 * filtered ptrace -- PROGRAM ARG...: the same, where ptrace(2) kills unless it only asks
 * (PTRACE_PEEKUSER): nobody is held by that program.
 * All others may be followed by eintr, see victim_eintr.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "victim.h"

/* Its bits have other names in newer headers. */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
enum { REFUSE_EXEC_GAIN = 1, NO_INHERIT = 2 };
/* An older C library does not know their numbers. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(v)   BPF_STMT(BPF_RET | BPF_K, v)

static const struct {
	const char *name;
	unsigned nr;
} calls[] = {
	{ "mmap", SYS_mmap },
	{ "mprotect", SYS_mprotect },
	{ "munmap", SYS_munmap },
	{ "clone", SYS_clone },
	{ "clone3", SYS_clone3 },
	{ "memfd_create", SYS_memfd_create },
	{ "close_range", SYS_close_range },
	{ "pipe2", SYS_pipe2 },
	{ "futex", SYS_futex },
	{ "rt_sigprocmask", SYS_rt_sigprocmask },
	{ "set_robust_list", SYS_set_robust_list },
	{ "rseq", SYS_rseq },
	{ "exit", SYS_exit },
	{ "madvise", SYS_madvise },
	{ "rt_sigreturn", SYS_rt_sigreturn },
	{ "unshare", SYS_unshare },
	{ "brk", SYS_brk },
	{ "ptrace", SYS_ptrace },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "pidfd_open", SYS_pidfd_open },
	{ "openat2", SYS_openat2 },
	{ "creat", SYS_creat },
	{ "write", SYS_write },
};

static const struct {
	const char *name;
	uint32_t answer;
} actions[] = {
	{ "errno", SECCOMP_RET_ERRNO | EPERM },
	{ "enosys", SECCOMP_RET_ERRNO | ENOSYS },
	{ "trap", SECCOMP_RET_TRAP },
	{ "trap-handled", SECCOMP_RET_TRAP },
	{ "kill-thread", SECCOMP_RET_KILL },
	{ "kill", SECCOMP_RET_KILL_PROCESS },
	{ "log", SECCOMP_RET_LOG },
};

static void handler(int sig)
{
	(void)sig;
}

static void filter(struct sock_filter *f, size_t n)
{
	struct sock_fprog prog = { (unsigned short)n, f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		wrong("seccomp: %s", strerror(errno));
}

static void filter_call(const char *call, const char *action)
{
	struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		RETURN(0),
		RETURN(SECCOMP_RET_ALLOW),
	};
	int found = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(call, calls[i].name)) {
			f[1].k = calls[i].nr;
			found |= 1;
		}
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (!strcmp(action, actions[i].name)) {
			f[2].k = actions[i].answer;
			found |= 2;
		}
	if (found != 3)
		wrong("filtered %s %s?", call, action);
	if (!strcmp(action, "trap-handled"))
		signal(SIGSYS, handler);
	filter(f, sizeof(f) / sizeof(*f));
}

static void filter_ptrace(void)
{
	struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_PEEKUSER, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};

	filter(f, sizeof(f) / sizeof(*f));
}

/* What systemd.exec(5) says of MemoryDenyWriteExecute=, for the two calls that we could make. */
static void filter_write_execute(void)
{
	struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		LOAD(args[2]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_WRITE | PROT_EXEC, 4, 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pkey_mprotect, 0, 3),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	filter(f, sizeof(f) / sizeof(*f));
}

/* As heapmedic's own table has it: a call that it makes and does not ask for ends this process. */
static void filter_listed(void)
{
	static const unsigned allowed[] = {
		SYS_mmap, SYS_mprotect, SYS_munmap, SYS_madvise, SYS_brk, SYS_futex,
		SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_prctl, SYS_getpid, SYS_gettid, SYS_tgkill,
		SYS_clock_gettime, SYS_clone3, SYS_clone, SYS_close_range, SYS_memfd_create,
		SYS_fcntl, SYS_dup3, SYS_pipe2, SYS_close, SYS_poll, SYS_read, SYS_write, SYS_rseq,
		SYS_set_robust_list, SYS_restart_syscall, SYS_exit,
		/* its own */
		SYS_pause, SYS_exit_group
	};
	enum { N = sizeof(allowed) / sizeof(*allowed) };
	struct sock_filter f[N + 3] = { LOAD(nr) };

	for (unsigned i = 0; i < N; i++)
		f[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							(unsigned char)(N - i), 0);
	f[N + 1] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	f[N + 2] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	filter(f, N + 3);
}

static void *idle(void *arg)
{
	free(malloc(100));
	thread_started();
	for (;;)
		pause();
	return arg;
}

static void set_up(int argc, char **argv)
{
	unsigned long mdwe = REFUSE_EXEC_GAIN;

	if (victim_option(argc, argv, "mdwe-no-inherit"))
		mdwe |= NO_INHERIT;
	if (victim_option(argc, argv, "wx"))
		filter_write_execute();
	else if (victim_option(argc, argv, "listed"))
		filter_listed();
	else if (argc == 2 && !prctl(PR_SET_MDWE, mdwe, 0, 0, 0))
		return;
	else if (argc == 2 && errno == EINVAL)
		wrong("this kernel has no PR_SET_MDWE");
	else if (argc == 3)
		filter_call(argv[1], argv[2]);
	else
		wrong("usage: filtered CALL ACTION | listed | wx | mdwe | mdwe-no-inherit");
}

int main(int argc, char **argv)
{
	static char *kept[64];
	pthread_t th;

	if (argc > 3 && !strcmp(argv[1], "ptrace") && !strcmp(argv[2], "--")) {
		filter_ptrace();
		execvp(argv[3], argv + 3);
		wrong("%s: %s", argv[3], strerror(errno));
	}
	if (argc > 4 && !strcmp(argv[3], "--")) {
		filter_call(argv[1], argv[2]);
		execvp(argv[4], argv + 4);
		wrong("%s: %s", argv[4], strerror(errno));
	}
	victim_eintr = !strcmp(argv[argc - 1], "eintr");
	argc -= victim_eintr;
	for (int i = 0; i < 64; i++)
		kept[i] = malloc(100000);
	for (int i = 0; i < 63; i++) {
		memset(kept[i], i, 100000);
		free(kept[i]);
	}
	for (int i = 0; i < 2; i++)
		if (pthread_create(&th, NULL, idle, NULL))
			wrong("no thread");
	wait_started(2);
	set_up(argc, argv);
	victim_ready();
	while (!victim_over(20))
		free(malloc(1000));
	return 0;
}
