// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A session in the target. What is slow (symbols, files, maps, ranking) happens with nobody held;
 * borrow.c holds a thread, proxy.c talks to the one of our own.
 */
#include "session_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "phase.h"
#include "stray.h"

#define DEFAULT_DEADLINE (2 * NS_PER_SEC)
#define DEFAULT_TIMEOUT	 (30 * NS_PER_SEC)

_Static_assert(SESSION_MAX_CALLS <= HM_MAX_CALLS, "a batch must fit into the block");
_Static_assert(sizeof(((struct call *)0)->arg) == sizeof(((struct hm_slot *)0)->arg), "abi");

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

/* A session that has touched nothing yet. */
static int session_new(const struct target *t, const struct modules *mods,
		       const struct session_opts *o, struct session **out, struct diag *d)
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
	rc = s->scratch ? session_prepare(s, d) : diag_internal(d, -ENOMEM, "opening a session");
	if (rc) {
		session_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int session_open(const struct target *t, const struct modules *mods, const struct session_opts *o,
		 struct session **out, struct diag *d)
{
	int rc = session_new(t, mods, o, out, d);

	if (!*out) /* then rc says why */
		return rc;
	if ((*out)->mode == HM_MODE_PROXY)
		rc = session_open_proxy(*out, d);
	if (rc) {
		session_free(*out);
		*out = NULL;
	}
	return rc;
}

int session_rehearse(const struct target *t, const struct modules *mods,
		     const struct session_opts *o, struct held *held, struct diag *d)
{
	struct session *s;
	int rc = session_new(t, mods, o, &s, d);
	int back;

	memset(held, 0, sizeof(*held));
	if (!s)
		return rc;
	rc = session_hold(s, CODE_ALLOC | CODE_LOADER | CODE_THREADS, d);
	if (rc == 0) {
		rc = session_map(s, d);
		if (rc == 0 && session_unmap(s))
			rc = diag_internal(d, -EIO, "removing the region");
		back = session_give_up(s, rc, NULL, d);
		rc = rc ? rc : back;
		*held = s->b.held;
	}
	session_free(s);
	return rc;
}

int session_call(struct session *s, struct call *v, size_t n, struct diag *d)
{
	int rc;

	if (n == 0 || n > SESSION_MAX_CALLS)
		return diag_internal(d, -EINVAL, "too many calls in one batch");
	if (s->running)
		return diag_fail(d, -EBUSY, HM_RUNNING, "still-running",
				 "wait until it has ended, then start again",
				 "an earlier call still runs in the target");
	rc = session_interrupted(s, d);
	if (rc)
		return rc;
	memset(s->block.slot, 0, sizeof(s->block.slot));
	for (size_t i = 0; i < n; i++) {
		struct hm_slot *slot = &s->block.slot[i];

		if (v[i].swap_addr && s->mode == HM_MODE_PROXY)
			return diag_internal(d, -EINVAL, "a shared word cannot be swapped");
		slot->fn = v[i].fn;
		memcpy(slot->arg, v[i].arg, sizeof(slot->arg));
		slot->swap_addr = v[i].swap_addr;
		slot->swap_value = v[i].swap_value;
		slot->keep_addr = v[i].keep_addr;
	}
	if (s->mode == HM_MODE_DIRECT)
		return session_call_direct(s, v, n, d);
	if (!s->proxy_on) {
		rc = session_open_proxy(s, d);
		if (rc)
			return rc;
	}
	phase_begin("the call runs in the target", 0);
	return session_call_proxy(s, v, n, d);
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

static uint64_t entry_point(const struct session *s, size_t at)
{
	uint64_t entry;

	memcpy(&entry, s->text + at, sizeof(entry));
	return s->r.base + entry;
}

uint64_t session_sink(struct session *s)
{
	return entry_point(s, HM_ENTRY_SINK);
}

uint64_t session_text_sink(struct session *s)
{
	return entry_point(s, HM_ENTRY_TEXT);
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

pid_t session_thread(const struct session *s)
{
	return s->proxy_on ? s->proxy.th.tid : 0;
}

const char *session_via(const struct session *s)
{
	return session_is_proxy(s) ? "proxy" : "direct";
}

void session_held(const struct session *s, struct held *out)
{
	*out = s->b.held;
}

int session_park(struct session *s, struct diag *d)
{
	int rc = 0;

	(void)stray_collect();
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

int session_close(struct session *s, struct diag *d, char *warn, size_t warn_size)
{
	int rc = s->proxy_on ? proxy_end(&s->proxy) : 0;
	char line[256] = "";

	if (s->running)
		rc = -EBUSY;
	if (target_alive(s->t))
		session_verify(s, rc, line, sizeof(line));
	if (warn && warn_size)
		snprintf(warn, warn_size, "%s", line);
	session_free(s);
	if (rc == -EBUSY)
		return diag_fail(d, rc, HM_RUNNING, "still-running",
				 "it finishes there by itself and leaves",
				 "a call still runs in the target");
	return 0;
}
