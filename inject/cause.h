// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CAUSE_H
#define HM_CAUSE_H
#include <stddef.h>

#include "diag.h"

/*
 * What can stand between us and a call in the target. Each cause has one row here: the word that
 * scripts see (error.code), its exit code, and the remedy, which is the hint. README has the same
 * rows; a test compares them.
 */
#define HM_CAUSES(X)                                                                               \
	/* which process */                                                                        \
	X(NO_PROCESS, "no-process", HM_GONE,                                                       \
	  "look for its pid again: pids are those of heapmedic's own pid namespace, in a "         \
	  "container they differ from the host's")                                                 \
	X(GONE, "gone", HM_GONE, "nothing is left to do")                                          \
	X(ZOMBIE, "zombie", HM_GONE,                                                               \
	  "its memory is given back already; its parent has to wait for it")                       \
	X(OWN_PID, "own-pid", HM_USAGE, "give the number of another process")                      \
	X(NOT_A_PROCESS, "not-a-process", HM_USAGE, "give the process that the thread belongs to") \
	X(KERNEL_THREAD, "kernel-thread", HM_UNSUPPORTED, "give the number of a user process")     \
	X(MAIN_THREAD_ENDED, "main-thread-ended", HM_UNSUPPORTED,                                  \
	  "nothing can be done from outside; restart it when possible")                            \
	X(NO_PROC, "no-proc", HM_NOT_PERMITTED,                                                    \
	  "mount proc (mount -t proc proc /proc), or enter its mount namespace and its root too "  \
	  "(nsenter -m -r)")                                                                       \
	X(HIDDEN, "hidden", HM_NOT_PERMITTED,                                                      \
	  "run as the same user or as root (proc is mounted with hidepid)")                        \
	X(NO_DESCRIPTORS, "no-descriptors", HM_INTERNAL,                                           \
	  "raise the limit of open files for heapmedic (ulimit -n 1024)")                          \
	/* may we */                                                                               \
	X(OTHER_USER, "not-permitted-other-user", HM_NOT_PERMITTED,                                \
	  "run it as root with CAP_SYS_PTRACE (sudo; kubectl debug --profile=sysadmin; docker "    \
	  "--cap-add SYS_PTRACE), or as the user of the process")                                  \
	X(OTHER_GROUP, "not-permitted-other-group", HM_NOT_PERMITTED,                              \
	  "run it as root with CAP_SYS_PTRACE, or with the gid of the process")                    \
	X(NOT_DUMPABLE, "not-permitted-not-dumpable", HM_NOT_PERMITTED,                            \
	  "run it as root with CAP_SYS_PTRACE")                                                    \
	X(CAPABILITIES, "not-permitted-capabilities", HM_NOT_PERMITTED,                            \
	  "run it with CAP_SYS_PTRACE (docker --cap-add SYS_PTRACE; kubectl debug "                \
	  "--profile=sysadmin)")                                                                   \
	X(FILES, "not-permitted-files", HM_NOT_PERMITTED,                                          \
	  "give it CAP_DAC_OVERRIDE as well (docker and kubectl: where all are dropped, add "      \
	  "DAC_OVERRIDE beside SYS_PTRACE), or run it as the user of the process")                 \
	X(USERNS, "not-permitted-userns", HM_NOT_PERMITTED,                                        \
	  "run it from the host, or in the user namespace of the process (nsenter -U)")            \
	X(YAMA, "not-permitted-yama", HM_NOT_PERMITTED,                                            \
	  "run it as root with CAP_SYS_PTRACE, or sysctl kernel.yama.ptrace_scope=0")              \
	X(YAMA_3, "not-permitted-yama-3", HM_NOT_PERMITTED,                                        \
	  "3 cannot be lowered without a restart of the machine")                                  \
	X(LSM, "not-permitted-security-module", HM_NOT_PERMITTED,                                  \
	  "look for a denial in the kernel log (AppArmor, SELinux, Smack, a BPF module)")          \
	X(SECCOMP_SELF, "not-permitted-seccomp-self", HM_NOT_PERMITTED,                            \
	  "run heapmedic without a seccomp profile (kubectl debug --profile=sysadmin; docker "     \
	  "--security-opt seccomp=unconfined)")                                                    \
	X(TRACED, "not-permitted-traced", HM_NOT_PERMITTED,                                        \
	  "end that tracer (a debugger, strace, another heapmedic) or let it detach")              \
	X(SECCOMP, "not-permitted-seccomp", HM_NOT_PERMITTED,                                      \
	  "run it as root of the host with CAP_SYS_ADMIN and without a seccomp filter of its "     \
	  "own: then the filter is suspended for the calls")                                       \
	/* can it be done */                                                                       \
	X(ARCHITECTURE, "architecture", HM_UNSUPPORTED,                                            \
	  "commands that make no call still work: check, maps, threads")                           \
	X(SHADOW_STACK, "shadow-stack", HM_UNSUPPORTED,                                            \
	  "start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off")                                  \
	X(MUSL, "musl", HM_UNSUPPORTED,                                                            \
	  "commands that make no call still work (check, diagnose, maps, threads, bt); another "   \
	  "malloc, linked in or preloaded (jemalloc, mimalloc), is what would help")               \
	X(NO_LIBC, "no-libc", HM_UNSUPPORTED,                                                      \
	  "commands that make no call still work: check, maps, threads, bt")                       \
	X(STATIC, "static", HM_UNSUPPORTED,                                                        \
	  "commands that make no call still work: check, maps, threads, bt")                       \
	X(NO_ANCHOR, "no-anchor", HM_UNSUPPORTED,                                                  \
	  "commands that make no call still work: check, maps, threads, bt")                       \
	X(NO_SYMBOLS, "no-symbols", HM_UNSUPPORTED,                                                \
	  "run it as root, so that the file can be opened through /proc/PID/map_files")            \
	X(NO_CODE, "no-executable-memory", HM_UNSUPPORTED,                                         \
	  "a security module or filter forbids it (SELinux: execmem): look at the kernel log")     \
	X(NO_THREADS, "no-threads", HM_UNSUPPORTED, "use --via direct")                            \
	X(LARGE_TLS, "large-tls", HM_UNSUPPORTED, "use --via direct")                              \
	X(NO_ROOM, "no-room", HM_UNSUPPORTED, "try --via direct")                                  \
	/* is it safe, and is there room */                                                        \
	X(STOPPED, "stopped", HM_UNSAFE, "let it go on first (kill -CONT PID)")                    \
	X(PROGRAM_CHANGED, "program-changed", HM_UNSAFE, "try again")                              \
	X(STARTING, "starting", HM_UNSAFE,                                                         \
	  "try again, or wait longer for it with --deadline 10s; `threads` shows what it waits "   \
	  "for")                                                                                   \
	X(DAMAGED_HEAP, "damaged-heap", HM_UNSAFE,                                                 \
	  "restart it; `gcore PID` keeps the evidence; call nothing that walks free memory "       \
	  "(malloc_trim, malloc_info, malloc_stats)")                                              \
	X(ARENA_LOCKED, "arena-locked", HM_UNSAFE,                                                 \
	  "look with `bt` for a thread inside malloc that does not get on (stopped by a "          \
	  "debugger?), and try again")                                                             \
	X(NO_CANDIDATE, "no-candidate", HM_UNSAFE,                                                 \
	  "try again: the threads may be elsewhere then; `threads` says more")                     \
	X(NO_SAFE_POINT, "no-safe-point", HM_UNSAFE,                                               \
	  "try again, or give it longer with --deadline 10s; `threads` lists them and why each "   \
	  "is not usable")                                                                         \
	X(SECCOMP_KILLS, "seccomp-kills", HM_UNSAFE,                                               \
	  "try --via direct, which makes fewer calls; the commands that make none work: "          \
	  "check, maps, arenas, threads, bt")                                                      \
	X(SECCOMP_UNREAD, "seccomp-unread", HM_UNSAFE,                                             \
	  "run heapmedic as root outside any seccomp filter")                                      \
	X(LIMIT_CGROUP_MEMORY, "limit-cgroup-memory", HM_UNSAFE,                                   \
	  "raise the limit by a MiB for the moment: the few pages that a call needs could "        \
	  "otherwise be what the OOM killer kills for")                                            \
	X(LIMIT_ADDRESS_SPACE, "limit-address-space", HM_CALL_FAILED,                              \
	  "raise it: prlimit --pid PID --as=unlimited:")                                           \
	X(LIMIT_DATA, "limit-data", HM_CALL_FAILED,                                                \
	  "raise it: prlimit --pid PID --data=unlimited:")                                         \
	X(LIMIT_LOCKED, "limit-locked", HM_CALL_FAILED,                                            \
	  "raise it: prlimit --pid PID --memlock=unlimited:")                                      \
	X(LIMIT_MAPPINGS, "limit-mappings", HM_CALL_FAILED,                                        \
	  "raise it: sysctl vm.max_map_count=262144")                                              \
	X(LIMIT_FILES, "limit-files", HM_CALL_FAILED,                                              \
	  "raise it: prlimit --pid PID --nofile=64:, or use --via direct")                         \
	X(LIMIT_FILE_SIZE, "limit-file-size", HM_CALL_FAILED,                                      \
	  "raise it: prlimit --pid PID --fsize=unlimited:; trim prints nothing and works")         \
	X(LIMIT_PROCESSES, "limit-processes", HM_CALL_FAILED,                                      \
	  "raise it: prlimit --pid PID --nproc=unlimited:, or use --via direct")                   \
	X(LIMIT_CGROUP_PIDS, "limit-cgroup-pids", HM_CALL_FAILED,                                  \
	  "raise pids.max of that cgroup, or use --via direct")                                    \
	X(NO_THREAD, "no-thread", HM_CALL_FAILED,                                                  \
	  "look at /proc/sys/kernel/threads-max and pid_max, or use --via direct")                 \
	X(NO_MEMORY, "no-memory", HM_CALL_FAILED,                                                  \
	  "look at vm.overcommit_memory and vm.max_map_count, and at its limits")

enum cause {
#define X(id, code, exit, remedy) CAUSE_##id,
	HM_CAUSES(X)
#undef X
		CAUSES
};

struct cause_row {
	const char *code;
	enum hm_exit exit;
	const char *remedy;
};

/* The row of a cause; NULL for a number that is none. */
const struct cause_row *cause_row(enum cause c);
/* diag_fail with the row's code, exit and remedy. */
int cause_fail(struct diag *d, int err, enum cause c, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#endif
