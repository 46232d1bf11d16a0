// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The page that we share with our thread in the target: a hostile target writes what it likes into
 * it. The tracer is replaced, so that no thread is needed: the proxy never stops, and is gone after
 * a while. The input is struct hm_block from proxy_state on, then memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../inject/leftover.h"
#include "../../inject/session_parts.h"
#include "fuzz.h"

const char fuzz_name[] = "proxy";

#define BASE 0x600000000000ULL
#define TID  7

static unsigned waits;

/* ---- in place of inject/tracer.c */
int tracee_seize(struct tracee *t, pid_t tid, unsigned long options)
{
	(void)options;
	t->tid = tid;
	t->seized = true;
	return 0;
}
int tracee_options(struct tracee *t, unsigned long options)
{
	(void)t, (void)options;
	return 0;
}
int tracee_stop(struct tracee *t, uint64_t deadline)
{
	(void)t, (void)deadline;
	return -ESRCH;
}
int tracee_interrupt(struct tracee *t)
{
	(void)t;
	return 0;
}
int tracee_new_thread(const struct tracee *t, pid_t *tid)
{
	(void)t, (void)tid;
	return -ESRCH;
}
int tracee_resume(struct tracee *t, int req, int sig)
{
	(void)t, (void)req, (void)sig;
	return 0;
}
bool tracee_faulted(const struct tracee *t)
{
	return t->event.kind == EV_SIGNAL;
}
int tracee_pass(struct tracee *t, int req)
{
	(void)t, (void)req;
	return 0;
}
int tracee_wait(struct tracee *t, uint64_t deadline, const volatile sig_atomic_t *cancel)
{
	(void)deadline, (void)cancel;
	t->event = (struct event){ .kind = EV_TRAP };
	return waits++ < 4 ? 0 : -ESRCH;
}
int tracee_detach(struct tracee *t, int sig)
{
	(void)sig;
	t->seized = false;
	return 0;
}
int tracee_release(struct tracee *t)
{
	t->seized = false;
	return 0;
}
void tracee_reap(struct tracee *t, uint64_t limit_ns)
{
	(void)limit_ns;
	t->seized = false;
}
int tracee_regs(const struct tracee *t, arch_regs *r)
{
	(void)t, (void)r;
	return -ESRCH;
}
int tracee_set_regs(const struct tracee *t, const arch_regs *r)
{
	(void)t, (void)r;
	return -ESRCH;
}
int tracee_mask(const struct tracee *t, uint64_t *mask)
{
	(void)t, (void)mask;
	return -ESRCH;
}
int tracee_set_mask(const struct tracee *t, uint64_t mask)
{
	(void)t, (void)mask;
	return -ESRCH;
}
int tracee_xstate(const struct tracee *t, void *buf, size_t *len)
{
	(void)t, (void)buf, (void)len;
	return -ESRCH;
}
int tracee_set_xstate(const struct tracee *t, const void *buf, size_t len)
{
	(void)t, (void)buf, (void)len;
	return -ESRCH;
}
int tracee_rseq(const struct tracee *t, struct rseq_config *out)
{
	(void)t, (void)out;
	return -EIO;
}
int tracee_filter(const struct tracee *t, unsigned index, struct sock_filter *buf, size_t max,
		  size_t *n)
{
	(void)t, (void)index, (void)buf, (void)max, (void)n;
	return -ENOENT;
}

/* ---- the thread's descriptors: 3 and 4 are pipes, 5 is a memory file, 6 is neither */
static void make_thread(void)
{
	static const char *const dirs[] = { "task", "task/7", "task/7/fd" };
	static const char status[] = "State:\tS\nTgid:\t7\nPid:\t7\nUid:\t0\t0\t0\t0\n";
	static bool made;
	char to[64], at[32];
	int fd[4];

	if (made)
		return;
	made = true;
	for (size_t i = 0; i < 3; i++)
		FUZZ_CHECK(mkdirat(fuzz_procfd(), dirs[i], 0700) == 0);
	FUZZ_CHECK(pipe2(fd, O_CLOEXEC | O_NONBLOCK) == 0);
	fd[2] = fuzz_file("text", 4);
	fd[3] = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(to, sizeof(to), "/proc/self/fd/%d", fd[i]);
		snprintf(at, sizeof(at), "task/7/fd/%u", 3 + i);
		FUZZ_CHECK(symlinkat(to, fuzz_procfd(), at) == 0);
	}
	fuzz_proc_file("task/7/status", status, sizeof(status) - 1);
}

static void results(struct session *s, const struct hm_block *b)
{
	struct call calls[4] = { 0 };
	struct diag d;
	char *text = NULL;
	size_t len = 0;
	bool cut;
	int rc;

	s->used = 512;
	diag_clear(&d);
	rc = session_results(s, calls, 4, &d);
	FUZZ_CHECK(rc <= 0);
	rc = session_output(s, (size_t)b->out_used, &text, &len, &cut, &d);
	FUZZ_CHECK(rc <= 0);
	if (rc == 0)
		FUZZ_CHECK(text && text[len] == '\0');
	else
		FUZZ_CHECK(!text);
	free(text);
}

static void start(struct session *s, const struct hm_block *b)
{
	struct diag d;
	int rc;

	waits = 0;
	diag_clear(&d);
	rc = proxy_start(&s->proxy, s->t, &s->r, TID, 0, &d);
	FUZZ_CHECK(rc <= 0);
	if (rc) {
		fuzz_diag(&d);
		return;
	}
	results(s, b);
	rc = proxy_end(&s->proxy);
	FUZZ_CHECK(rc <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hm_block b;
	static uint8_t pieces[sizeof(b) + 10];
	static unsigned char scratch[4096];
	struct fuzz_input in = { data, size }, mem = { pieces, sizeof(pieces) };
	struct target t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd(), .comm = "x" };
	struct session s = { .t = &t, .mode = HM_MODE_PROXY, .scratch = scratch };
	const size_t from = offsetof(struct hm_block, proxy_state);
	size_t len;
	const uint8_t *p = fuzz_bytes(&in, sizeof(b) - from, &len);

	make_thread();
	region_layout(&s.r, BASE, HM_MODE_PROXY, 1, SESSION_SCRATCH, 0);
	memset(&b, 0, sizeof(b));
	memcpy((char *)&b + from, p, len);
	len = sizeof(b);
	memcpy(pieces, &s.r.block, 8);
	memcpy(pieces + 8, &len, 2);
	memcpy(pieces + 10, &b, sizeof(b));
	fuzz_memory(&mem);
	start(&s, &b);
	return 0;
}
