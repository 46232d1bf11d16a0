// SPDX-License-Identifier: GPL-3.0-or-later
/* What a session needs before a thread is held: symbols, code map, region, payload. */
#include "session_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "cause.h"
#include "last_words.h"
#include "leftover.h"
#include "limits.h"
#include "mem.h"

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

#define OWN_DESCRIPTORS 12

extern const unsigned char payload_begin[], payload_end[];

int session_maps(struct session *s, struct diag *d)
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

static size_t payload_len(void)
{
	return (size_t)(payload_end - payload_begin);
}

static int prepare_payload(struct session *s)
{
	uint64_t distance = s->r.block - s->r.base;

	s->text_len = payload_len();
	s->text = malloc(s->text_len);
	if (!s->text)
		return -ENOMEM;
	memcpy(s->text, payload_begin, s->text_len);
	memcpy(s->text + HM_ENTRY_BLOCK, &distance, sizeof(distance));
	return 0;
}

DIR *session_fd_dir(const struct target *t)
{
	int fd = openat(t->procfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int highest_fd(const struct target *t)
{
	DIR *dir = session_fd_dir(t);
	struct dirent *e;
	int max = 1023;

	while (dir && (e = readdir(dir)) != NULL) {
		int n = (int)strtol(e->d_name, NULL, 10);

		if (n > max)
			max = n;
	}
	if (dir)
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
	b->fn_malloc = s->a.malloc;
	b->fn_free = s->a.free;
	b->max_fd = s->mode == HM_MODE_PROXY ? highest_fd(s->t) : 0;
	b->fd_out = -1;
	b->out_addr = r->out;
	b->out_size = r->out_len;
	b->n_reap = s->n_reap;
	memcpy(b->reap, s->reap, sizeof(b->reap));
}

static int large_tls(size_t size, struct diag *d)
{
	return cause_fail(d, -EOPNOTSUPP, CAUSE_LARGE_TLS,
			  "a thread of the target needs %zu bytes of thread-local storage, more "
			  "than we bring",
			  size);
}

static int place_region(struct session *s, struct diag *d)
{
	size_t text = payload_len();
	uint64_t base;

	region_layout(&s->r, 0, s->mode, text, SESSION_SCRATCH, s->a.tls_size);
	if (s->r.size > REGION_MAX)
		return large_tls(s->a.tls_size, d);
	base = region_choose(&s->maps, s->r.size);
	if (!base)
		return cause_fail(d, -EOPNOTSUPP, CAUSE_NO_ROOM,
				  "there is no room for %" PRIu64
				  " bytes in the target's address space",
				  s->r.size);
	region_layout(&s->r, base, s->mode, text, SESSION_SCRATCH, s->a.tls_size);
	return 0;
}

int session_place(struct session *s, struct diag *d)
{
	int rc = session_maps(s, d);

	if (rc == 0)
		rc = place_region(s, d);
	if (rc == 0)
		prepare_block(s);
	return rc;
}

static int choose_mode(enum via via, const struct anchors *a, const struct proc_status *st,
		       enum hm_mode *mode, struct diag *d)
{
	bool can = anchors_can_thread(a);

	switch (via) {
	case VIA_PROXY:
		if (!can)
			return cause_fail(
				d, -EOPNOTSUPP, CAUSE_NO_THREADS,
				"the target has no pthread_create, or none of what it takes "
				"to give a thread a stack (pthread_attr_setstack)");
		*mode = HM_MODE_PROXY;
		break;
	case VIA_DIRECT:
		*mode = HM_MODE_DIRECT;
		break;
	case VIA_AUTO:
		/* a second thread would switch glibc to its locked paths for good */
		*mode = st->threads > 1 && can ? HM_MODE_PROXY : HM_MODE_DIRECT;
		break;
	}
	return 0;
}

static void need_of(const struct region *r, enum hm_mode mode, size_t mappings, struct need *out)
{
	out->mode = mode;
	out->region = r->size;
	out->writable = r->out + r->out_len - r->stack + r->pstack_len;
	out->mappings = mappings;
}

/*
 * A session opens the target's memory, its thread's descriptors and files of /proc: so many at once
 * at most, beside the libraries that are open already.
 */
static int check_own_descriptors(const struct target *t, struct diag *d)
{
	int fd[OWN_DESCRIPTORS], rc = 0;
	size_t n = 0;

	while (n < OWN_DESCRIPTORS && rc == 0) {
		fd[n] = fcntl(t->procfd, F_DUPFD_CLOEXEC, 0);
		rc = fd[n] < 0 ? -errno : 0;
		n += rc == 0;
	}
	while (n)
		close(fd[--n]);
	return rc ? diag_internal(d, rc, "preparing the session") : 0;
}

int session_foresee(const struct target *t, const struct modules *mods, const struct maps *maps,
		    const struct session_opts *o, struct diag *d)
{
	enum hm_mode mode = HM_MODE_DIRECT;
	struct anchors a;
	struct region r;
	struct room room;
	struct need need;
	int rc = check_own_descriptors(t, d);

	if (rc == 0)
		rc = anchors_find(mods, &a, d);
	if (rc)
		return rc;
	rc = limits_read(t, false, &room);
	if (rc)
		return target_unreadable(t, "/status", rc, d);
	rc = choose_mode(o->via, &a, &room.status, &mode, d);
	if (rc)
		return rc;
	region_layout(&r, 0, mode, payload_len(), SESSION_SCRATCH, a.tls_size);
	if (r.size > REGION_MAX)
		return large_tls(a.tls_size, d);
	need_of(&r, mode, maps->n, &need);
	return limits_judge(&room, &need, d);
}

int session_no_room(const struct session *s, int err, struct diag *d)
{
	struct room room;
	struct need need;
	int rc;

	if (limits_read(s->t, true, &room) == 0) {
		const struct proc_status *st = &room.status;

		need_of(&s->r, s->mode, s->maps.n, &need);
		rc = limits_judge(&room, &need, d);
		if (rc)
			return rc;
		/* mmap(2): a mapping that is locked at once (mlockall) would go over the limit */
		if (err == -EAGAIN)
			return cause_fail(d, err, CAUSE_LIMIT_LOCKED,
					  "what process %d (%s) maps is locked (mlockall), %" PRIu64
					  " bytes are, RLIMIT_MEMLOCK is %" PRIu64
					  ", a call needs %" PRIu64 " more",
					  (int)st->pid, st->name, st->vm_locked,
					  room.limits.memlock, need.region);
	}
	if (err == -EACCES || err == -EPERM)
		return cause_fail(d, err, CAUSE_NO_CODE,
				  "process %d may not map memory that is executable: %s",
				  (int)s->t->pid, strerror(-err));
	return cause_fail(d, err, CAUSE_NO_MEMORY,
			  "mapping %" PRIu64 " bytes in the target failed: %s", s->r.size,
			  strerror(-err));
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
	b->options = st->seccomp ? PTRACE_O_SUSPEND_SECCOMP : 0;
	if (pages_open(s->t, &b->pages) == 0) {
		b->pages.brief = true;
		b->sp.pages = &b->pages;
	}
	b->sp.pid = s->t->pid;
	b->sp.code = s->code;
	b->sp.unwinder = s->unwinder;
	rc = xsave_facts_read(&b->xsave);
	if (rc)
		return rc;
	b->sp.need = borrow_stack_need(b->xsave.xstate_size);
	b->memfd = mem_open_force(s->t->procfd);
	return b->memfd < 0 ? b->memfd : 0;
}

int session_prepare(struct session *s, struct diag *d)
{
	struct proc_status st;
	struct leftovers left;
	int rc = anchors_find(s->mods, &s->a, d);

	if (rc)
		return rc;
	rc = status_read(s->t->procfd, "status", &st);
	if (rc)
		return target_unreadable(s->t, "/status", rc, d);
	rc = choose_mode(s->o.via, &s->a, &st, &s->mode, d);
	if (rc == 0)
		rc = session_maps(s, d);
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
	s->abort_msg = last_words_find(s->mods);
	return 0;
}
