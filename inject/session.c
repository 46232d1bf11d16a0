// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A session in the target. What is slow (symbols, files, maps, ranking) happens here with nobody
 * held; borrow.c holds a thread, proxy.c talks to the one of our own.
 */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "anchors.h"
#include "borrow.h"
#include "clock.h"
#include "leftover.h"
#include "mem.h"
#include "preflight.h"
#include "proxy.h"
#include "threads.h"

#define DEFAULT_DEADLINE (2 * NS_PER_SEC)
#define DEFAULT_TIMEOUT	 (30 * NS_PER_SEC)
/* pthread_create waits at most for locks that running threads hold for microseconds. */
#define BOOT_LIMIT	(2 * NS_PER_SEC)
#define TRIES_PER_ROUND 8
#define FIRST_NAP	(200 * 1000ULL)
#define LONGEST_NAP	(20 * NS_PER_MS)
#define OUTPUT_MAX	((size_t)256 << 20)
#define DESCRIPTORS_MAX 4096

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

extern const unsigned char payload_begin[], payload_end[];

struct session {
	const struct target *t;
	const struct modules *mods;
	struct session_opts o;
	struct anchors a;
	struct code_map *code;
	struct unwinder *unwinder;
	struct maps maps;
	bool have_maps;
	struct borrow b;
	struct region r;
	enum hm_mode mode;
	struct proxy proxy;
	bool proxy_on;
	bool running; /* a direct call was left behind */
	unsigned char *text;
	size_t text_len;
	struct hm_block block; /* as it is to be written */
	struct hm_range reap[HM_MAX_REAP];
	size_t n_reap;
	unsigned char *scratch;
	size_t used;	/* of scratch */
	char *captured; /* direct: what the last batch wrote */
	size_t captured_len;
	uint64_t captured_lost;
	sigset_t old_mask;
};

static int refresh_maps(struct session *s, struct diag *d)
{
	struct maps fresh;
	int rc = maps_read(s->t, &fresh, d);

	if (rc)
		return rc;
	if (s->have_maps)
		maps_free(&s->maps);
	s->maps = fresh;
	s->have_maps = true;
	return 0;
}

/* ---- what is prepared once ---- */

static int prepare_payload(struct session *s)
{
	uint64_t distance = s->r.block - s->r.base;

	s->text_len = (size_t)(payload_end - payload_begin);
	s->text = malloc(s->text_len);
	if (!s->text)
		return -ENOMEM;
	memcpy(s->text, payload_begin, s->text_len);
	memcpy(s->text + HM_ENTRY_BLOCK, &distance, sizeof(distance));
	return 0;
}

static int highest_fd(const struct target *t)
{
	int fd = openat(t->procfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	int max = 1023;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return max;
	}
	while ((e = readdir(dir)) != NULL) {
		int n = (int)strtol(e->d_name, NULL, 10);

		if (n > max)
			max = n;
	}
	closedir(dir);
	return max;
}

static void prepare_block(struct session *s)
{
	struct hm_block *b = &s->block;
	const struct region *r = &s->r;
	uint64_t entry;

	memset(b, 0, sizeof(*b));
	memcpy(&entry, s->text + HM_ENTRY_PROXY, sizeof(entry));
	b->magic = HM_BLOCK_MAGIC;
	b->base = r->base;
	b->size = r->size;
	b->munmap_len = r->guard ? r->guard - r->base : r->size;
	b->fn_munmap = s->a.munmap;
	b->rw_addr = r->stack;
	b->rw_len = r->out + r->out_len - r->stack;
	b->pstack_addr = r->pstack;
	b->pstack_len = r->pstack_len;
	b->mode = (uint32_t)s->mode;
	b->boot_state = HM_BOOT_ARMED;
	b->fn_errno_location = s->a.errno_location;
	b->fn_attr_init = s->a.attr_init;
	b->fn_attr_setstack = s->a.attr_setstack;
	b->fn_attr_setdetachstate = s->a.attr_setdetachstate;
	b->fn_attr_destroy = s->a.attr_destroy;
	b->fn_create = s->a.create;
	b->fn_proxy = r->base + entry;
	b->max_fd = s->mode == HM_MODE_PROXY ? highest_fd(s->t) : 0;
	b->fd_out = -1;
	b->out_addr = r->out;
	b->out_size = r->out_len;
	b->n_reap = s->n_reap;
	memcpy(b->reap, s->reap, sizeof(b->reap));
}

static int place_region(struct session *s, struct diag *d)
{
	size_t text = (size_t)(payload_end - payload_begin);
	uint64_t base;

	region_layout(&s->r, 0, s->mode, text, SESSION_SCRATCH, s->a.tls_size);
	base = region_choose(&s->maps, s->r.size);
	if (!base)
		return diag_fail(d, -EOPNOTSUPP, HM_UNSUPPORTED, "no-room", "try --via direct",
				 "there is no room for %" PRIu64
				 " bytes in the target's address space",
				 s->r.size);
	region_layout(&s->r, base, s->mode, text, SESSION_SCRATCH, s->a.tls_size);
	return 0;
}

static int choose_mode(struct session *s, const struct proc_status *st, struct diag *d)
{
	bool can = anchors_can_thread(&s->a);

	switch (s->o.via) {
	case VIA_PROXY:
		if (!can)
			return diag_fail(d, -EOPNOTSUPP, HM_UNSUPPORTED, "no-threads",
					 "use --via direct",
					 "the target has no pthread_create loaded");
		s->mode = HM_MODE_PROXY;
		break;
	case VIA_DIRECT:
		s->mode = HM_MODE_DIRECT;
		break;
	case VIA_AUTO:
		/* a second thread would switch glibc to its locked paths for good */
		s->mode = st->threads > 1 && can ? HM_MODE_PROXY : HM_MODE_DIRECT;
		break;
	}
	return 0;
}

static int prepare_borrow(struct session *s, const struct proc_status *st)
{
	struct borrow *b = &s->b;
	int rc;

	b->memfd = -1;
	rc = borrow_init(b);
	if (rc)
		return rc;
	b->t = s->t;
	b->trampoline = s->a.trampoline;
	b->syscall_ret = s->a.syscall_ret;
	b->cancel = s->o.cancel;
	b->options = st->seccomp ? PTRACE_O_SUSPEND_SECCOMP : 0;
	b->sp.pid = s->t->pid;
	b->sp.code = s->code;
	b->sp.unwinder = s->unwinder;
	rc = xsave_facts_read(&b->xsave);
	if (rc)
		return rc;
	b->memfd = mem_open_force(s->t->procfd);
	return b->memfd < 0 ? b->memfd : 0;
}

static int prepare(struct session *s, struct diag *d)
{
	struct proc_status st;
	struct leftovers left;
	int rc = anchors_find(s->mods, &s->a, d);

	if (rc)
		return rc;
	rc = status_read(s->t->procfd, "status", &st);
	if (rc)
		return target_gone(s->t, d);
	rc = choose_mode(s, &st, d);
	if (rc == 0)
		rc = refresh_maps(s, d);
	if (rc)
		return rc;
	rc = leftover_find(s->t, &s->maps, s->reap, HM_MAX_REAP, &s->n_reap, &left);
	if (rc == 0)
		rc = code_map_build(s->mods, &s->code);
	if (rc == 0)
		rc = unwinder_new(s->t->pid, s->mods, &s->unwinder);
	if (rc == 0)
		rc = prepare_borrow(s, &st);
	if (rc)
		return diag_internal(d, rc, "preparing the session");
	rc = place_region(s, d);
	if (rc)
		return rc;
	rc = prepare_payload(s);
	if (rc)
		return diag_internal(d, rc, "preparing the payload");
	prepare_block(s);
	return 0;
}

/* ---- holding a thread at a safe point ---- */

struct search {
	uint64_t deadline;
	unsigned tries;
	pid_t tid; /* the last one tried, and why not */
	char reason[200];
};

static int search_failed(const struct session *s, const struct search *f, struct diag *d)
{
	uint64_t ms = s->o.deadline_ns / NS_PER_MS;

	if (!f->tries)
		return diag_fail(d, -EAGAIN, HM_UNSAFE, "no-safe-point",
				 "`check` lists the threads and why each is not usable",
				 "no thread could be borrowed within %" PRIu64 " ms%s%s", ms,
				 f->reason[0] ? ": " : "", f->reason);
	return diag_fail(d, -EAGAIN, HM_UNSAFE, "no-safe-point",
			 "nothing was touched; try again, or give it longer with --deadline 10s",
			 "no safe point within %" PRIu64 " ms and %u tries: thread %d: %s", ms,
			 f->tries, f->tid, f->reason);
}

static bool traced_by_another(const struct session *s, pid_t tid)
{
	struct proc_status st;
	char path[48];

	snprintf(path, sizeof(path), "task/%d/status", tid);
	return status_read(s->t->procfd, path, &st) == 0 && st.tracer;
}

/* One thread. 0: held. 1: not this one. Negative: no use to go on. */
static int try_thread(struct session *s, const struct thread *th, struct search *f, struct diag *d)
{
	pid_t tid = th->tid;
	const char *why;
	int rc = th->sp ? safepoint_preview(&s->b.sp, th->sp, th->pc, th->tcb) : 0;

	if (rc == 0)
		rc = borrow_hold(&s->b, tid, f->deadline);
	if (rc == 0)
		return 0;
	switch (rc) {
	case -EAGAIN:
		why = s->b.sp.reason;
		break;
	case -EBUSY:
		return diag_fail(d, rc, HM_UNSAFE, "stopped",
				 "continue it (kill -CONT), then try again",
				 "process %d is stopped by a signal", s->t->pid);
	case -ESRCH:
		if (!target_alive(s->t))
			return target_gone(s->t, d);
		return 1;
	case -EPERM:
		if (!traced_by_another(s, tid)) {
			preflight_explain_eperm(s->t, d);
			return rc;
		}
		why = "it is traced by another process";
		break;
	case -ETIMEDOUT:
		why = "it did not stop: it is stuck in the kernel";
		break;
	default:
		return diag_internal(d, rc, "holding a thread");
	}
	f->tries++;
	f->tid = tid;
	snprintf(f->reason, sizeof(f->reason), "%s", why);
	return 1;
}

static int try_round(struct session *s, struct search *f, struct diag *d)
{
	struct threads list;
	unsigned tried = 0;
	int rc = refresh_maps(s, d);

	if (rc)
		return rc;
	s->b.sp.maps = &s->maps;
	rc = threads_read(s->t, &list, d);
	if (rc)
		return rc;
	rc = threads_rank(s->t, &s->maps, s->mods, &list);
	if (rc) {
		threads_free(&list);
		return diag_internal(d, rc, "ranking threads");
	}
	rc = 1;
	for (size_t i = 0; i < list.n && tried < TRIES_PER_ROUND && rc == 1; i++) {
		const struct thread *th = &list.v[i];

		if (s->o.thread && th->tid != s->o.thread)
			continue;
		if (!th->usable) {
			snprintf(f->reason, sizeof(f->reason), "thread %d: %s", th->tid,
				 th->reason ? th->reason : "not usable");
			continue;
		}
		tried++;
		rc = try_thread(s, th, f, d);
	}
	threads_free(&list);
	return rc;
}

static bool cancelled(const struct session *s)
{
	return s->o.cancel && *s->o.cancel;
}

/* 0 with a thread held at a safe point, or a diag. */
static int hold_somebody(struct session *s, unsigned forbid, struct diag *d)
{
	struct search f = { .deadline = clock_now() + s->o.deadline_ns };
	uint64_t nap = FIRST_NAP;
	int rc;

	s->b.sp.forbid = forbid;
	for (;;) {
		rc = try_round(s, &f, d);
		if (rc != 1)
			return rc;
		if (cancelled(s))
			return diag_fail(
				d, -ECANCELED, HM_UNSAFE, "interrupted", "",
				"interrupted while looking for a safe point; nothing was touched");
		if (clock_now() + nap > f.deadline)
			return search_failed(s, &f, d);
		clock_sleep(nap);
		if (nap < LONGEST_NAP)
			nap *= 2;
	}
}

/* ---- the region ---- */

static int map_region(struct session *s, struct diag *d)
{
	const uint64_t arg[6] = { s->r.base,
				  s->r.size,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0 };
	uint64_t got = 0;
	int rc = borrow_syscall(&s->b, SYS_mmap, arg, &got);

	if (rc == 0 && got != s->r.base) {
		/* before Linux 4.17 the flag is only a hint */
		const uint64_t back[6] = { got, s->r.size };

		(void)!borrow_syscall(&s->b, SYS_munmap, back, &got);
		rc = -EEXIST;
	}
	if (rc)
		return diag_fail(d, rc, HM_CALL_FAILED, "no-memory",
				 "look at its RLIMIT_AS, memory cgroup and vm.overcommit_memory",
				 "mapping %" PRIu64 " bytes in the target failed: %s", s->r.size,
				 strerror(-rc));
	return 0;
}

static int unmap_region(struct session *s)
{
	const uint64_t arg[6] = { s->r.base, s->r.size };
	uint64_t ignored;

	return borrow_syscall(&s->b, SYS_munmap, arg, &ignored);
}

static int died(const struct session *s, struct diag *d)
{
	return diag_fail(d, -ESRCH, HM_DIED, "target-died", "look at its log or core for the cause",
			 "process %d or its thread ended while it was borrowed", s->t->pid);
}

/* After an error with a thread held: give it back, and say so if even that fails. */
static int give_up(struct session *s, int rc, const char *what, struct diag *d)
{
	int back = borrow_return(&s->b);

	if (rc == -ESRCH || back == -ESRCH)
		return died(s, d);
	if (back)
		return diag_internal(d, back, "giving the borrowed thread back");
	return what ? diag_internal(d, rc, what) : rc;
}

/* Holds a thread, maps the region, starts the boot code. On success the thread is in it. */
static int enter(struct session *s, unsigned forbid, struct diag *d)
{
	struct proc_status st;
	int rc = status_read(s->t->procfd, "status", &st);

	if (rc)
		return target_gone(s->t, d);
	rc = hold_somebody(s, forbid, d);
	if (rc)
		return rc;
	rc = map_region(s, d);
	if (rc)
		return give_up(s, rc, NULL, d);
	s->block.marker = borrow_marker(&s->b, &st);
	rc = borrow_boot(&s->b, &s->r, s->text, s->text_len, &s->block, s->scratch, s->used);
	if (rc) {
		(void)!unmap_region(s);
		return give_up(s, rc, "entering the payload", d);
	}
	return 0;
}

static int boot_fault(struct session *s, int sig, struct diag *d)
{
	int rc = unmap_region(s);

	if (rc == 0)
		rc = borrow_return(&s->b);
	if (rc)
		return give_up(s, rc, "taking the thread out of a fault", d);
	return diag_fail(d, -EFAULT, HM_DIED, "call-faulted",
			 "its heap may be damaged or locked; plan a restart and keep a core",
			 "the call ended in signal %d (SIG%s) and was undone; thread %d runs on",
			 sig, sigabbrev_np(sig), s->b.sp.tid);
}

/* ---- proxy sessions ---- */

static int boot_result(struct session *s, int *rc)
{
	return mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, boot_rc), rc,
			sizeof(*rc));
}

static int create_failed(struct session *s, int boot_rc, struct diag *d)
{
	int rc = unmap_region(s);

	if (rc)
		return give_up(s, rc, "removing the region", d);
	rc = borrow_return(&s->b);
	if (rc)
		return give_up(s, rc, NULL, d);
	return diag_fail(d, -boot_rc, HM_CALL_FAILED, "no-thread",
			 "raise the pids limit of its cgroup or RLIMIT_NPROC, or use --via direct",
			 "pthread_create in the target failed: %s", strerror(boot_rc));
}

static int open_proxy(struct session *s, struct diag *d)
{
	pid_t clone = 0;
	int boot_rc = 0, sig = 0;
	int rc = enter(s, CODE_ALLOC | CODE_LOADER | CODE_THREADS, d);

	if (rc)
		return rc;
	rc = borrow_finish(&s->b, &s->r, s->block.marker, clock_now() + BOOT_LIMIT, &clone, &sig);
	if (rc == -EFAULT)
		return boot_fault(s, sig, d);
	if (rc)
		return give_up(s, rc, "waiting for pthread_create", d);
	rc = boot_result(s, &boot_rc);
	if (rc == 0 && !boot_rc && !clone)
		rc = -EPROTO;
	if (rc)
		return give_up(s, rc, "starting the proxy", d);
	if (boot_rc)
		return create_failed(s, boot_rc, d);
	rc = borrow_return(&s->b);
	if (rc)
		return give_up(s, rc, NULL, d);
	rc = proxy_start(&s->proxy, s->t, &s->r, clone, s->b.options, d);
	if (rc)
		return rc;
	s->proxy.cancel = s->o.cancel;
	s->proxy_on = true;
	return 0;
}

static int read_results(struct session *s, struct call *v, size_t n, struct diag *d)
{
	size_t len = n * sizeof(struct hm_slot);
	int rc = mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, slot), s->block.slot,
			  len);

	if (rc == 0 && s->used)
		rc = mem_read(s->t->pid, s->r.scratch, s->scratch, s->used);
	if (rc)
		return diag_internal(d, rc, "reading the results");
	for (size_t i = 0; i < n; i++) {
		v[i].ret = s->block.slot[i].ret;
		v[i].err = (int)s->block.slot[i].err;
		v[i].ns = s->block.slot[i].ns;
	}
	return 0;
}

static int call_by_proxy(struct session *s, struct call *v, size_t n, struct diag *d)
{
	uint64_t block = s->r.block;
	pid_t pid = s->t->pid;
	uint32_t counts[2] = { (uint32_t)n, 0 };
	int rc = mem_write(pid, block + offsetof(struct hm_block, slot), s->block.slot,
			   n * sizeof(struct hm_slot));

	if (rc == 0)
		rc = mem_write(pid, block + offsetof(struct hm_block, n_calls), counts,
			       sizeof(counts));
	if (rc == 0 && s->used)
		rc = mem_write(pid, s->r.scratch, s->scratch, s->used);
	if (rc)
		return target_alive(s->t) ? diag_internal(d, rc, "writing the calls") : died(s, d);
	rc = proxy_run(&s->proxy, s->o.timeout_ns, d);
	return rc ? rc : read_results(s, v, n, d);
}

/* ---- direct sessions ---- */

/* The out buffer is zero where nothing was written and holds text: it ends at the first NUL. */
static int capture(struct session *s)
{
	size_t at = 0;

	free(s->captured);
	s->captured = malloc(s->r.out_len + 1);
	if (!s->captured)
		return -ENOMEM;
	while (at < s->r.out_len) {
		size_t len = s->r.out_len - at < 65536 ? s->r.out_len - at : 65536;
		int rc = mem_read(s->t->pid, s->r.out + at, s->captured + at, len);
		char *end;

		if (rc)
			return rc;
		end = memchr(s->captured + at, '\0', len);
		if (end) {
			at = (size_t)(end - s->captured);
			break;
		}
		at += len;
	}
	s->captured_len = at;
	return mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, out_lost),
			&s->captured_lost, sizeof(s->captured_lost));
}

static int left_running(struct session *s, int rc, struct diag *d)
{
	int back = borrow_abandon(&s->b);

	s->running = true;
	if (back == -ESRCH)
		return died(s, d);
	return diag_fail(d, rc, HM_RUNNING, "still-running",
			 "thread and memory are given back there when it returns",
			 rc == -ECANCELED
				 ? "interrupted: the call still runs on thread %d"
				 : "the call did not return in time and still runs on thread %d",
			 s->b.sp.tid);
}

static int call_directly(struct session *s, struct call *v, size_t n, struct diag *d)
{
	unsigned forbid = CODE_ALLOC | CODE_LOADER | CODE_THREADS;
	pid_t clone = 0;
	int sig = 0;
	int rc, undo;

	for (size_t i = 0; i < n; i++)
		forbid |= v[i].stdio ? CODE_STDIO : 0U;
	s->block.n_calls = (uint32_t)n;
	rc = enter(s, forbid, d);
	if (rc)
		return rc;
	rc = borrow_finish(&s->b, &s->r, s->block.marker, clock_now() + s->o.timeout_ns, &clone,
			   &sig);
	if (rc == -ETIMEDOUT || rc == -ECANCELED)
		return left_running(s, rc, d);
	if (rc == -EFAULT)
		return boot_fault(s, sig, d);
	if (rc)
		return give_up(s, rc, "waiting for the call", d);
	rc = capture(s);
	if (rc == 0)
		rc = read_results(s, v, n, d);
	undo = unmap_region(s);
	if (rc || undo)
		return give_up(s, rc ? rc : undo, "reading the results", d);
	s->block.n_reap = 0;
	rc = borrow_return(&s->b);
	return rc ? give_up(s, rc, NULL, d) : 0;
}

/* ---- the interface ---- */

static void session_free(struct session *s)
{
	borrow_free(&s->b);
	unwinder_free(s->unwinder);
	code_map_free(s->code);
	if (s->have_maps)
		maps_free(&s->maps);
	free(s->text);
	free(s->scratch);
	free(s->captured);
	wait_end(&s->old_mask);
	free(s);
}

int session_open(const struct target *t, const struct modules *mods, const struct session_opts *o,
		 struct session **out, struct diag *d)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return diag_internal(d, -ENOMEM, "opening a session");
	wait_begin(&s->old_mask);
	s->t = t;
	s->mods = mods;
	s->o = *o;
	s->b.memfd = -1;
	if (!s->o.deadline_ns)
		s->o.deadline_ns = DEFAULT_DEADLINE;
	if (!s->o.timeout_ns)
		s->o.timeout_ns = DEFAULT_TIMEOUT;
	s->scratch = calloc(1, SESSION_SCRATCH);
	rc = s->scratch ? prepare(s, d) : diag_internal(d, -ENOMEM, "opening a session");
	if (rc == 0 && s->mode == HM_MODE_PROXY)
		rc = open_proxy(s, d);
	if (rc) {
		session_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int session_call(struct session *s, struct call *v, size_t n, struct diag *d)
{
	if (n == 0 || n > SESSION_MAX_CALLS || n > HM_MAX_CALLS)
		return diag_internal(d, -EINVAL, "too many calls in one batch");
	if (s->running)
		return diag_fail(d, -EBUSY, HM_RUNNING, "still-running", "",
				 "an earlier call still runs in the target");
	memset(s->block.slot, 0, sizeof(s->block.slot));
	for (size_t i = 0; i < n; i++) {
		struct hm_slot *slot = &s->block.slot[i];

		if (v[i].swap_addr && s->mode == HM_MODE_PROXY)
			return diag_internal(d, -EINVAL, "a shared word cannot be swapped");
		slot->fn = v[i].fn;
		memcpy(slot->arg, v[i].arg, sizeof(slot->arg));
		slot->swap_addr = v[i].swap_addr;
		slot->swap_value = v[i].swap_value;
	}
	if (s->mode == HM_MODE_DIRECT)
		return call_directly(s, v, n, d);
	if (!s->proxy_on) {
		int rc = open_proxy(s, d);

		if (rc)
			return rc;
	}
	return call_by_proxy(s, v, n, d);
}

void *session_scratch(struct session *s)
{
	return s->scratch;
}

uint64_t session_addr(struct session *s, const void *local)
{
	return s->r.scratch + (uint64_t)((const unsigned char *)local - s->scratch);
}

void *session_alloc(struct session *s, size_t len)
{
	size_t at = (s->used + 15) & ~(size_t)15;

	if (at > SESSION_SCRATCH || len > SESSION_SCRATCH - at)
		return NULL;
	s->used = at + len;
	return s->scratch + at;
}

void session_scratch_reset(struct session *s)
{
	memset(s->scratch, 0, s->used);
	s->used = 0;
}

uint64_t session_sink(struct session *s)
{
	uint64_t entry;

	memcpy(&entry, s->text + HM_ENTRY_SINK, sizeof(entry));
	return s->r.base + entry;
}

uint64_t session_outbuf(struct session *s, size_t *len)
{
	*len = s->r.out_len;
	return s->r.out;
}

int session_outfd(const struct session *s)
{
	return s->mode == HM_MODE_PROXY ? 1 : -1;
}

bool session_is_proxy(const struct session *s)
{
	return s->mode == HM_MODE_PROXY;
}

const char *session_via(const struct session *s)
{
	return session_is_proxy(s) ? "proxy" : "direct";
}

void session_held(const struct session *s, struct held *out)
{
	*out = s->b.held;
}

/* All of the memory file, then the used part of the FILE's buffer. */
static int read_proxy_output(struct session *s, size_t outbuf_used, char **text, size_t *len)
{
	off_t size = lseek(s->proxy.out, 0, SEEK_END);
	size_t at = 0;

	if (size < 0)
		return -errno;
	if ((size_t)size > OUTPUT_MAX || outbuf_used > s->r.out_len)
		return -EFBIG;
	*text = malloc((size_t)size + outbuf_used + 1);
	if (!*text)
		return -ENOMEM;
	while (at < (size_t)size) {
		ssize_t n = pread(s->proxy.out, *text + at, (size_t)size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	if (outbuf_used && mem_read(s->t->pid, s->r.out, *text + at, outbuf_used) == 0)
		at += outbuf_used;
	(*text)[at] = '\0';
	*len = at;
	return ftruncate(s->proxy.out, 0) ? -errno : 0;
}

int session_output(struct session *s, size_t outbuf_used, char **text, size_t *len, bool *cut,
		   struct diag *d)
{
	uint64_t lost = 0;
	int rc = 0;

	*text = NULL;
	if (s->mode == HM_MODE_PROXY) {
		rc = read_proxy_output(s, outbuf_used, text, len);
		if (rc == 0)
			rc = mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, out_lost),
				      &lost, sizeof(lost));
	} else if (s->captured) {
		*text = s->captured;
		*len = s->captured_len;
		(*text)[*len] = '\0';
		lost = s->captured_lost;
		s->captured = NULL;
	} else {
		*text = strdup("");
		*len = 0;
		rc = *text ? 0 : -ENOMEM;
	}
	if (rc) {
		free(*text);
		*text = NULL;
		return diag_internal(d, rc, "reading the captured output");
	}
	*cut = lost > 0 || (s->mode == HM_MODE_DIRECT && *len >= s->r.out_len);
	return 0;
}

int session_park(struct session *s, struct diag *d)
{
	int rc = 0;

	(void)borrow_collect(&s->b);
	if (s->proxy_on && s->b.options) {
		/* untraced, its system calls would meet the target's seccomp filter: the next call
		 * starts a new one */
		rc = proxy_end(&s->proxy);
		s->proxy_on = false;
		s->running = rc == -EBUSY;
		return rc ? diag_internal(d, rc, "ending the proxy") : 0;
	}
	if (s->proxy_on)
		rc = proxy_park(&s->proxy);
	if (rc == -ESRCH)
		return target_alive(s->t) ? 0 : target_gone(s->t, d);
	return rc ? diag_internal(d, rc, "parking the proxy") : 0;
}

/* ---- the end, and the proof that nothing is left ---- */

static bool has_our_descriptor(const struct target *t)
{
	int fd = openat(t->procfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	bool found = false;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (int i = 0; !found && i < DESCRIPTORS_MAX && (e = readdir(dir)) != NULL; i++) {
		char link[64] = "";
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		found = n > 0 &&
			strncmp(link, "/memfd:" HM_NAME, sizeof("/memfd:" HM_NAME) - 1) == 0;
	}
	closedir(dir);
	return found;
}

static void verify(struct session *s, int rc, char *warn, size_t size)
{
	if (rc && rc != -EBUSY) {
		snprintf(warn, size,
			 "the proxy thread did not leave in order (%s); the next run cleans up",
			 strerror(-rc));
		return;
	}
	if (rc || refresh_maps(s, NULL))
		return;
	for (size_t i = 0; i < s->maps.n; i++) {
		uint64_t base;

		if (region_owns(&s->maps.v[i], &base) && base == s->r.base) {
			snprintf(warn, size,
				 "memory at 0x%" PRIx64
				 " remains in the target; the next run removes it",
				 s->maps.v[i].start);
			return;
		}
	}
	if (has_our_descriptor(s->t))
		snprintf(warn, size, "a descriptor of ours remains in the target");
}

int session_close(struct session *s, struct diag *d, char *warn, size_t warn_size)
{
	int rc = s->proxy_on ? proxy_end(&s->proxy) : 0;
	char line[256] = "";

	if (s->running)
		rc = -EBUSY;
	if (target_alive(s->t))
		verify(s, rc, line, sizeof(line));
	if (warn && warn_size)
		snprintf(warn, warn_size, "%s", line);
	session_free(s);
	if (rc == -EBUSY)
		return diag_fail(d, rc, HM_RUNNING, "still-running",
				 "it finishes there by itself and leaves",
				 "a call still runs in the target");
	return 0;
}
