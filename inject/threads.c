// SPDX-License-Identifier: GPL-3.0-or-later
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mem.h"
#include "region.h"
#include "socket_wait.h"
#include "tcb.h"
#include "timeout.h"
#include "tls.h"
#include "touched.h"

/* Below this no signal frame fits on any x86-64 machine; what is needed exactly is known when the
 * thread is held. */
#define STACK_ROOM ((uint64_t)4 * 1024)
#define LOCATE_MAX 64U /* walks along the lists of stacks */

/* ---- reading */

/* One read is all: these files are a line, made up at once. len is the room, the NUL included. */
static int read_line(int dirfd, const char *path, char *buf, size_t len)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, buf, len - 1);
	while (n < 0 && errno == EINTR);
	err = n < 0 ? -errno : n == 0 ? -ESRCH : 0;
	close(fd);
	if (err)
		return err;
	buf[n] = '\0';
	return 0;
}

/*
 * "running", "NR arg0 .. arg5 sp pc" or "-1 sp pc" (blocked, but not in a call). Anything else
 * leaves the thread as one that runs.
 */
static void parse_syscall(const char *s, struct thread *th)
{
	uint64_t v[8];
	size_t n = 0, want;
	char *end;
	long nr;

	errno = 0;
	nr = strtol(s, &end, 10);
	if (end == s || errno || nr < -1)
		return;
	want = nr >= 0 ? 8 : 2;
	for (; n < want && *end == ' '; n++) {
		s = end;
		v[n] = strtoull(s, &end, 16);
		if (end == s || errno)
			return;
	}
	if (n != want)
		return;
	th->sp = v[n - 2];
	th->pc = v[n - 1];
	if (nr >= 0) {
		th->nr = nr;
		th->in_syscall = true;
		memcpy(th->arg, v, sizeof(th->arg));
	}
}

/* -ESRCH if it has ended. */
static int read_thread(int taskfd, pid_t tid, struct thread *th)
{
	char path[32], line[1024];
	int r;

	memset(th, 0, sizeof(*th));
	th->tid = tid;
	th->nr = -1;
	snprintf(path, sizeof(path), "%d/stat", (int)tid);
	r = read_line(taskfd, path, line, sizeof(line));
	if (r)
		return r == -ENOENT ? -ESRCH : r;
	if (stat_parse(line, &th->state, NULL, NULL) || stat_comm(line, th->name, sizeof(th->name)))
		return -EBADMSG;
	/* needs the right to attach; without it stack and call stay unknown */
	snprintf(path, sizeof(path), "%d/syscall", (int)tid);
	if (read_line(taskfd, path, line, sizeof(line)) == 0)
		parse_syscall(line, th);
	return 0;
}

static int add_thread(struct threads *out, size_t *cap, const struct thread *th)
{
	if (out->n == *cap) {
		size_t want = *cap ? *cap * 2 : 64;
		struct thread *v = reallocarray(out->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		out->v = v;
		*cap = want;
	}
	out->v[out->n++] = *th;
	return 0;
}

static int read_dir(DIR *dir, struct threads *out)
{
	const struct dirent *e;
	size_t cap = 0;

	while ((e = readdir(dir)) != NULL) {
		struct thread th;
		char *end;
		long tid = strtol(e->d_name, &end, 10);
		int r;

		if (*end || tid <= 0)
			continue;
		r = read_thread(dirfd(dir), (pid_t)tid, &th);
		if (r == -ESRCH)
			continue;
		if (!r)
			r = add_thread(out, &cap, &th);
		if (r)
			return r;
	}
	return 0;
}

int threads_read(const struct target *t, struct threads *out, struct diag *d)
{
	int fd, err;
	DIR *dir;

	memset(out, 0, sizeof(*out));
	fd = openat(t->procfd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return target_unreadable(t, "/task", -errno, d);
	dir = fdopendir(fd);
	if (!dir) {
		err = -errno;
		close(fd);
		return diag_internal(d, err, "/proc/PID/task");
	}
	err = read_dir(dir, out);
	closedir(dir);
	if (!err && out->n)
		return 0;
	threads_free(out);
	return err ? target_unreadable(t, "/task", err, d) : target_gone(t, d);
}

int thread_read(const struct target *t, pid_t tid, struct thread *out)
{
	int fd = openat(t->procfd, "task", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = read_thread(fd, tid, out);
	close(fd);
	return err;
}

void threads_free(struct threads *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

/* ---- ranking */

/* Smaller is better; the arena counts first, then how the interruption will be mended. */
enum {
	RANK_KERNEL = 0,
	RANK_HEAL = 2,
	RANK_TIMED = 1, /* more, for a timeout: should we be killed, the frame cannot keep it */
	RANK_FAULT = 4,
	RANK_RUNNING = 5,
	RANK_NO_ARENA = 10,
	RANK_ANEW = 30, /* more */
	RANK_UNUSABLE = 100
};

/* Why a thread in this state cannot be borrowed, NULL if it can. */
static const char *state_reason(char state)
{
	switch (state) {
	case 'R':
	case 'S':
		return NULL;
	case 'D':
		return "in an uninterruptible wait";
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by a tracer";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "in an unknown state";
	}
}

static bool is_main_stack(const struct map *m)
{
	return strcmp(m->name, "[stack]") == 0;
}

/*
 * Why the stack of th will not do, NULL if it will. Fills stack_lo, stack_hi and tcb. nstid is its
 * tid as its own pid namespace counts.
 */
static const char *stack_reason(const struct target *t, const struct maps *maps,
				struct tcb_finder *f, struct thread *th, pid_t nstid)
{
	const struct map *m;
	uint64_t base;

	th->stack_lo = th->stack_hi = th->tcb = 0;
	if (!th->sp)
		return NULL; /* not known before it is stopped */
	m = maps_find(maps, th->sp);
	if (!m)
		return "its stack pointer is outside every mapping";
	/* of this session or of another: it ends when its session does, borrowed or not */
	if (region_owns(m, &base))
		return "it is heapmedic's own";
	th->stack_lo = m->start;
	th->stack_hi = m->end;
	if (th->tid == t->pid) {
		if (!is_main_stack(m))
			return "it is not on the main stack (fiber, goroutine)";
	} else {
		th->tcb = tcb_find(f, th->sp, m->end, nstid);
		if (!th->tcb)
			return "it is not on a stack of glibc's (fiber, goroutine)";
	}
	if (th->sp - m->start < STACK_ROOM)
		return "less than 4 KiB are mapped below its stack pointer";
	return NULL;
}

/* Relative timeouts, which the dead man's frame cannot keep, or only for what is left of them. */
static bool has_timeout(const struct thread *th)
{
	uint64_t op = th->arg[1] & (uint64_t)FUTEX_CMD_MASK;
	unsigned which;

	switch (th->nr) {
	case SYS_nanosleep:
	case SYS_restart_syscall:
		return true;
	case SYS_clock_nanosleep:
		return !(th->arg[1] & TIMER_ABSTIME);
	case SYS_poll:
		return (int)th->arg[2] > 0;
	case SYS_select:
		return th->arg[4] != 0;
	case SYS_futex:
		return op == FUTEX_WAIT && th->arg[3] != 0;
	default:
		return timeout_form(th->nr, th->arg, &which) != TIMEOUT_NONE;
	}
}

/* Why the call that th is in forbids it, NULL if it does not. Fills the rank otherwise. */
static const char *call_reason(const struct target *t, struct thread *th)
{
	const struct syscall_fact *f;

	if (!th->sp || !th->in_syscall) {
		th->rank = th->sp ? RANK_FAULT : RANK_RUNNING;
		th->reason = th->sp ? "in the kernel, not in a call" : "running";
		return NULL;
	}
	f = syscall_fact(th->nr);
	if (!f)
		return "in a call that is not known to restart";
	switch (syscall_restart(th->nr, th->arg)) {
	case RESTART_KERNEL:
		th->rank = RANK_KERNEL;
		break;
	case RESTART_HEAL:
		th->rank = RANK_HEAL;
		break;
	case RESTART_NEVER:
		return "in a call that must not be interrupted";
	}
	th->reason = f->name;
	if (has_timeout(th))
		th->rank += RANK_TIMED;
	th->anew = socket_wait_is_timed(t, th->nr, (int)th->arg[0]);
	if (th->anew) {
		th->rank += RANK_ANEW;
		th->reason = "its socket's timeout would begin anew";
	}
	return NULL;
}

pid_t thread_inner_tid(const struct target *t, pid_t tid)
{
	struct proc_status st;
	char path[48];

	snprintf(path, sizeof(path), "task/%d/status", (int)tid);
	if (status_read(t->procfd, path, &st) || st.nspid_len == 0)
		return tid;
	return st.nspid[st.nspid_len - 1];
}

static uint64_t main_tp(const struct tls_layout *l, const struct maps *maps, struct tcb_finder *f,
			pid_t nstid)
{
	return l->stack_list ? tcb_find_listed(f, l->stack_list, l->link_offset, nstid)
			     : tcb_find_main(f, maps, nstid);
}

void threads_refuse(struct thread *th, const char *why)
{
	th->usable = false;
	th->reason = why;
	th->rank = RANK_UNUSABLE;
}

/* Usable or not, and the thread pointer of each as far as it is known (tps). */
static void judge(const struct target *t, const struct maps *maps, const struct tls_layout *l,
		  struct tcb_finder *f, struct threads *list, uint64_t *tps)
{
	struct proc_status st;
	bool nested = status_read(t->procfd, "status", &st) == 0 && st.nspid_len > 1;

	for (size_t i = 0; i < list->n; i++) {
		struct thread *th = &list->v[i];
		pid_t nstid = nested ? thread_inner_tid(t, th->tid) : th->tid;
		const char *no = state_reason(th->state);

		if (!no)
			no = stack_reason(t, maps, f, th, nstid);
		if (!no)
			no = call_reason(t, th);
		th->usable = !no;
		if (no)
			threads_refuse(th, no);
		tps[i] = th->tid == t->pid ? main_tp(l, maps, f, nstid) : th->tcb;
		th->tp = tps[i];
	}
}

struct space {
	pid_t pid;
	const struct pages *pages;
};

static int read_space(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct space *s = ctx;

	return touched_read(s->pages, s->pid, addr, buf, len);
}

static void find_arenas(const struct target *t, const struct pages *pages,
			const struct tls_layout *l, const uint64_t *tps, struct threads *list)
{
	uint64_t off = 0;
	struct space space = { t->pid, pages };
	bool known = tls_arena_offset(l, tps, list->n, read_space, &space, &off) == 0;

	list->arena_off = known ? off : 0;
	for (size_t i = 0; i < list->n; i++) {
		uint64_t arena = 0;

		list->v[i].has_arena = known && tps[i] &&
				       mem_read(t->pid, tps[i] - off, &arena, sizeof(arena)) == 0 &&
				       arena != 0;
		if (!list->v[i].has_arena)
			list->v[i].rank += RANK_NO_ARENA;
	}
}

static int compare(const void *pa, const void *pb)
{
	const struct thread *a = pa, *b = pb;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

void threads_sort(struct threads *list)
{
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), compare);
}

size_t threads_at_no_cost(const struct threads *list)
{
	size_t n = 0;

	while (n < list->n && list->v[n].usable && list->v[n].rank < RANK_NO_ARENA)
		n++;
	return n;
}

int threads_rank(const struct target *t, const struct maps *maps, const struct modules *mods,
		 struct threads *list)
{
	struct tls_layout layout;
	struct tcb_finder finder;
	uint64_t *tps;
	int err;

	if (list->n == 0)
		return 0;
	tls_layout_read(t->pid, mods, &layout);
	tps = calloc(list->n, sizeof(*tps));
	if (!tps)
		return -ENOMEM;
	err = tcb_finder_init(&finder, t, layout.tid_offset);
	if (err)
		goto out;
	judge(t, maps, &layout, &finder, list, tps);
	find_arenas(t, &finder.pages, &layout, tps, list);
	threads_sort(list);
	tcb_finder_free(&finder);
out:
	free(tps);
	return err;
}

int threads_locate(const struct target *t, const struct modules *mods, struct threads *list)
{
	struct tls_layout l;
	struct tcb_finder finder;
	unsigned left = LOCATE_MAX;
	int err;

	tls_layout_read(t->pid, mods, &l);
	if (!l.stack_used)
		return 0;
	err = tcb_finder_init(&finder, t, l.tid_offset);
	if (err)
		return err;
	for (size_t i = 0; i < list->n && left; i++) {
		struct thread *th = &list->v[i];
		pid_t tid;

		if (th->tp)
			continue;
		left--;
		tid = thread_inner_tid(t, th->tid);
		th->tp = tcb_find_listed(&finder, l.stack_used, l.link_offset, tid);
		if (!th->tp)
			th->tp = tcb_find_listed(&finder, l.stack_list, l.link_offset, tid);
	}
	tcb_finder_free(&finder);
	return 0;
}
