// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The code that runs inside the target. No libc, no writable data, no relocation, no vector
 * registers. Everything it knows stands in struct hm_block. It must be right when the host dies at
 * any instruction: it then finishes what it is doing, gives the borrowed thread back, and the proxy
 * leaves at the end of file on its pipe.
 */
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "arena.h"

_Static_assert(offsetof(struct hm_block, base) == HM_OFF_BASE, "abi");
_Static_assert(offsetof(struct hm_block, munmap_len) == HM_OFF_MUNMAP_LEN, "abi");
_Static_assert(offsetof(struct hm_block, fn_munmap) == HM_OFF_FN_MUNMAP, "abi");

/* System call numbers and constants of the kernel's x86-64 ABI, spelled here because no header may
 * pull in libc. */
enum {
	NR_read = 0,
	NR_write = 1,
	NR_close = 3,
	NR_poll = 7,
	NR_mprotect = 10,
	NR_munmap = 11,
	NR_rt_sigprocmask = 14,
	NR_getpid = 39,
	NR_fcntl = 72,
	NR_prctl = 157,
	NR_gettid = 186,
	NR_clock_gettime = 228,
	NR_tgkill = 234,
	NR_unshare = 272,
	NR_dup3 = 292,
	NR_pipe2 = 293,
	NR_memfd_create = 319,
	NR_rseq = 334,
	NR_close_range = 436,

	PROT_RW = 3,
	PR_SET_NAME = 15,
	PR_SET_VMA = 0x53564d41,
	PR_SET_VMA_ANON_NAME = 0,
	RSEQ_FLAG_UNREGISTER = 1,
	SIG_UNBLOCK = 1,
	SIG_SETMASK = 2,
	CLOCK_MONOTONIC = 1,
	CLONE_FILES = 0x400,
	CLOSE_RANGE_UNSHARE = 2,
	MFD_CLOEXEC = 1,
	O_CLOEXEC = 02000000,
	O_APPEND = 02000,
	F_SETFL = 4,
	POLLIN = 1,
	PTHREAD_CREATE_DETACHED = 1,
	EINTR = 4,
	ENOSYS = 38,
	EAGAIN = 11,
	OPEN_WAIT_MS = 3000,
};

/*
 * At rest only signal 33 is open, with which glibc makes setuid(2) known to every thread: what is
 * sent to the process must not be delivered here. While a call runs the host says what is
 * (call_mask).
 */
#define BIT(n)	  (1UL << ((n)-1))
#define REST_MASK (~BIT(33))

static long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static long raw(long nr, long a, long b, long c, long d)
{
	return raw6(nr, a, b, c, d, 0, 0);
}

static uint64_t now_ns(void)
{
	struct {
		long sec, nsec;
	} ts = { 0, 0 };

	raw(NR_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0);
	return (uint64_t)ts.sec * 1000000000UL + (uint64_t)ts.nsec;
}

static void run_call(const struct hm_block *b, struct hm_slot *s)
{
	int *(*errno_location)(void) = (int *(*)(void))b->fn_errno_location;
	uint64_t (*fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		       uint64_t);
	uint64_t *swap = (uint64_t *)s->swap_addr;
	int *keep = (int *)s->keep_addr;
	uint64_t kept = 0;
	int was = keep ? *keep : 0;
	uint64_t from;

	/* one that takes fewer does not look at the others: the caller removes them */
	fn = (uint64_t(*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			  uint64_t))s->fn;
	*errno_location() = 0;
	if (swap) {
		kept = *swap;
		*swap = s->swap_value;
	}
	from = now_ns();
	s->ret = fn(s->arg[0], s->arg[1], s->arg[2], s->arg[3], s->arg[4], s->arg[5], s->arg[6],
		    s->arg[7]);
	s->ns = now_ns() - from;
	if (swap)
		*swap = kept;
	if (keep)
		*keep = was;
	s->err = (uint64_t)*errno_location();
}

static void run_calls(struct hm_block *b)
{
	for (uint32_t i = 0; i < b->n_calls && i < HM_MAX_CALLS; i++) {
		run_call(b, &b->slot[i]);
		__atomic_store_n(&b->n_done, i + 1, __ATOMIC_RELEASE);
	}
}

/* A write callback for allocators: void f(void *ignored, const char *text). Finds its block beside
 * the code. */
void payload_sink(void *ignored, const char *text);
/* hidden: reached relative to the program counter, never through an address that the linker filled
 * in */
extern char payload_entries[] __attribute__((visibility("hidden")));

static struct hm_block *my_block(void)
{
	uint64_t distance = *(const uint64_t *)(payload_entries + HM_ENTRY_BLOCK);

	return (struct hm_block *)(payload_entries + distance);
}

void payload_sink(void *ignored, const char *text)
{
	struct hm_block *b = my_block();
	uint64_t len = 0;
	char *out;

	(void)ignored;
	while (text[len])
		len++;
	if (b->fd_out >= 0) {
		while (len) {
			long n = raw(NR_write, b->fd_out, (long)text, (long)len, 0);

			if (n == -EINTR)
				continue;
			if (n <= 0) {
				b->out_lost += len;
				return;
			}
			text += n;
			len -= (uint64_t)n;
		}
		return;
	}
	out = (char *)b->out_addr;
	for (uint64_t i = 0; i < len; i++) {
		if (b->out_used >= b->out_size) {
			b->out_lost += len - i;
			return;
		}
		out[b->out_used++] = text[i];
	}
}

/* The same with its arguments the other way round: as mimalloc calls it. */
void payload_text(const char *text, void *ignored);
void payload_text(const char *text, void *ignored)
{
	payload_sink(ignored, text);
}

static void reap(struct hm_block *b)
{
	for (uint64_t i = 0; i < b->n_reap && i < HM_MAX_REAP; i++)
		raw(NR_munmap, (long)b->reap[i].addr, (long)b->reap[i].len, 0, 0);
}

/* Uses the caller's libc: pthread_create may allocate, which is why the thread stands at a safe
 * point. */
static int start_proxy(struct hm_block *b)
{
	int (*attr_init)(void *) = (int (*)(void *))b->fn_attr_init;
	int (*attr_destroy)(void *) = (int (*)(void *))b->fn_attr_destroy;
	int (*setstack)(void *, void *, size_t) =
		(int (*)(void *, void *, size_t))b->fn_attr_setstack;
	int (*setdetach)(void *, int) = (int (*)(void *, int))b->fn_attr_setdetachstate;
	int (*create)(uint64_t *, const void *, void *, void *) =
		(int (*)(uint64_t *, const void *, void *, void *))b->fn_create;
	int rc = (int)-raw(NR_mprotect, (long)b->pstack_addr, (long)b->pstack_len, PROT_RW, 0);

	if (rc == 0)
		rc = attr_init(b->attr);
	if (rc)
		return rc;
	rc = setstack(b->attr, (void *)b->pstack_addr, b->pstack_len);
	if (!rc)
		rc = setdetach(b->attr, PTHREAD_CREATE_DETACHED);
	arena_note(b);
	if (!rc)
		rc = create(&b->thread_id, b->attr, (void *)b->fn_proxy, b);
	arena_note(b);
	attr_destroy(b->attr);
	return rc;
}

/* Runs on the borrowed thread, which finds its errno as it was. */
void payload_boot(struct hm_block *b);
void payload_boot(struct hm_block *b)
{
	int *(*errno_location)(void) = (int *(*)(void))b->fn_errno_location;
	int *err = errno_location();
	int kept = *err;
	uint64_t open = BIT(33) | (b->marker ? BIT(b->marker) : 0);

	/* The host has blocked all of them until now, when there is a stack for a handler. */
	__atomic_store_n(&b->boot_state, HM_BOOT_RUNNING, __ATOMIC_SEQ_CST);
	raw(NR_rt_sigprocmask, SIG_UNBLOCK, (long)&open, 0, 8);
	raw6(NR_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, (long)b->base, (long)b->size,
	     (long)HM_NAME, 0);
	reap(b);
	if (b->mode == HM_MODE_PROXY)
		b->boot_rc = start_proxy(b);
	else
		run_calls(b);
	*err = kept;
	__atomic_store_n(&b->boot_state, HM_BOOT_DONE, __ATOMIC_SEQ_CST);
	if (b->marker)
		raw(NR_tgkill, raw(NR_getpid, 0, 0, 0, 0), raw(NR_gettid, 0, 0, 0, 0), b->marker,
		    0);
}

/* A descriptor table of our own, empty: the application's sockets and files are not kept open by
 * this thread. */
static long own_descriptors(const struct hm_block *b)
{
	long rc = raw(NR_close_range, 0, 0xffffffffL, CLOSE_RANGE_UNSHARE, 0);

	if (rc == 0)
		return 0;
	rc = raw(NR_unshare, CLONE_FILES, 0, 0, 0);
	if (rc)
		return rc;
	for (int fd = 0; fd <= b->max_fd; fd++)
		raw(NR_close, fd, 0, 0, 0);
	return 0;
}

static long open_output(struct hm_block *b)
{
	long fd = raw(NR_memfd_create, (long)HM_NAME, MFD_CLOEXEC, 0, 0);
	long rc;

	if (fd != 0)
		return fd < 0 ? fd : -ENOSYS;
	rc = raw(NR_fcntl, fd, F_SETFL, O_APPEND, 0);
	if (rc == 0)
		rc = raw(NR_dup3, fd, 1, O_CLOEXEC, 0);
	if (rc >= 0)
		rc = raw(NR_dup3, fd, 2, O_CLOEXEC, 0);
	b->fd_out = 1;
	return rc < 0 ? rc : 0;
}

static long open_pipes(struct hm_block *b)
{
	int fds[2];
	long rc = raw(NR_pipe2, (long)fds, O_CLOEXEC, 0, 0);

	if (rc)
		return rc;
	b->fd_request = fds[0];
	b->fd_request_host = fds[1];
	rc = raw(NR_pipe2, (long)fds, O_CLOEXEC, 0, 0);
	if (rc)
		return rc;
	b->fd_reply_host = fds[0];
	b->fd_reply = fds[1];
	return 0;
}

/* Waits for one request byte; 0 means leave (end of file, time over, error). ms < 0: no limit. */
static char next_request(const struct hm_block *b, int ms)
{
	struct {
		int fd;
		short events, revents;
	} p = { b->fd_request, POLLIN, 0 };
	uint64_t until = now_ns() + (uint64_t)ms * 1000000UL;
	char c = 0;

	for (;;) {
		long left = ms;
		long rc;

		if (ms >= 0) {
			uint64_t now = now_ns();

			if (now >= until)
				return 0;
			left = (long)((until - now) / 1000000UL) + 1;
		}
		rc = raw(NR_poll, (long)&p, 1, left, 0);
		if (rc == -EINTR || rc == -EAGAIN || rc == 0)
			continue;
		if (rc < 0)
			return 0;
		rc = raw(NR_read, b->fd_request, (long)&c, 1, 0);
		if (rc == -EINTR)
			continue;
		return rc == 1 ? c : 0;
	}
}

/*
 * Nobody has said that the borrowed thread is out of the region. It should be by now, but a stopped
 * process or a starved thread is late by any time: so everything stays, and the next run, which
 * looks where the threads are, takes it away.
 */
static void keep_region(struct hm_block *b)
{
	b->munmap_len = 0;
}

static void set_mask(uint64_t mask)
{
	raw(NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8);
}

/* The host has gone without saying so: what it wanted to be done at the end is done here. */
static void part(struct hm_block *b)
{
	if (!b->parting.fn)
		return;
	set_mask(b->call_mask);
	run_call(b, &b->parting);
	set_mask(REST_MASK);
}

static bool answer(const struct hm_block *b)
{
	const char c = 'd';
	long rc;

	do
		rc = raw(NR_write, b->fd_reply, (long)&c, 1, 0);
	while (rc == -EINTR);
	return rc == 1;
}

static void serve(struct hm_block *b)
{
	char c;

	/* Until the host has opened its ends, ours keep the pipes alive; after that its death is
	 * our end of file. */
	if (next_request(b, OPEN_WAIT_MS) != HM_REQ_OPENED) {
		keep_region(b);
		return;
	}
	raw(NR_close, b->fd_request_host, 0, 0, 0);
	raw(NR_close, b->fd_reply_host, 0, 0, 0);
	__atomic_store_n(&b->proxy_state, HM_PROXY_SERVING, __ATOMIC_SEQ_CST);
	while ((c = next_request(b, -1)) == HM_REQ_CALL) {
		set_mask(b->call_mask);
		run_calls(b);
		set_mask(REST_MASK);
		if (!answer(b)) {
			c = 0;
			break;
		}
	}
	if (c != HM_REQ_QUIT)
		part(b);
}

/*
 * The host has to read why, and the borrowed thread may still be on its way out of the region,
 * which goes with this thread: neither is left to chance.
 */
static void fail(struct hm_block *b)
{
	__atomic_store_n(&b->proxy_state, HM_PROXY_FAILED, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < OPEN_WAIT_MS; ms++) {
		if (__atomic_load_n(&b->proxy_state, __ATOMIC_SEQ_CST) != HM_PROXY_FAILED)
			return;
		raw(NR_poll, 0, 0, 1, 0);
	}
	keep_region(b);
}

void payload_proxy(struct hm_block *b);
void payload_proxy(struct hm_block *b)
{
	long rc;

	set_mask(REST_MASK);
	raw(NR_prctl, PR_SET_NAME, (long)HM_NAME, 0, 0);
	b->proxy_tid = (int32_t)raw(NR_gettid, 0, 0, 0, 0);
	__atomic_store_n(&b->proxy_state, HM_PROXY_STARTED, __ATOMIC_SEQ_CST);
	arena_make_cache(b);
	b->proxy_step = 1;
	rc = own_descriptors(b);
	if (rc == 0) {
		b->proxy_step = 2;
		rc = open_output(b);
	}
	if (rc == 0) {
		b->proxy_step = 3;
		rc = open_pipes(b);
	}
	b->proxy_errno = (int32_t)-rc;
	if (rc == 0) {
		__atomic_store_n(&b->proxy_state, HM_PROXY_READY, __ATOMIC_SEQ_CST);
		serve(b);
	} else {
		fail(b);
	}
	arena_make_cache(b);
	/*
	 * The kernel writes to a registered rseq area at every switch. A host that is going to take
	 * the stack away has put the registration here.
	 */
	if (b->rseq_addr && raw(NR_rseq, (long)b->rseq_addr, (long)b->rseq_len,
				RSEQ_FLAG_UNREGISTER, (long)b->rseq_sig) == 0)
		b->rseq_addr = 0;
	__atomic_store_n(&b->proxy_state, HM_PROXY_LEAVING, __ATOMIC_SEQ_CST);
}
