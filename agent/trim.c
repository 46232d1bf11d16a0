// SPDX-License-Identifier: GPL-3.0-or-later
#include "trim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../inject/status.h"
#include "allocator_choice.h"
#include "glibc_picture.h"

/*
 * Anonymous + Swap: memory that was swapped out and is given back lowers only the latter. Not Rss:
 * the pages of libc's code that the call itself needs come into it, and are nothing that a trim
 * took back.
 */
static int64_t returned(const struct usage *before, const struct usage *after)
{
	return (int64_t)(before->anon + before->swap) - (int64_t)(after->anon + after->swap);
}

/* After these the target cannot be asked again, or must not be. */
static bool ends_it(const struct diag *d)
{
	return d->exit == HM_GONE || d->exit == HM_UNSAFE || d->exit == HM_RUNNING ||
	       d->exit == HM_DIED || d->exit == HM_NOT_PERMITTED || d->exit == HM_INTERNAL;
}

static void names_append(char *buf, size_t size, const char *name)
{
	size_t n = strlen(buf);

	snprintf(buf + n, size - n, "%s%s", n ? ", " : "", name);
}

static int nothing_to_trim(const struct process *p, struct diag *d)
{
	char names[128] = "";

	for (size_t i = 0; i < p->allocs.n; i++)
		names_append(names, sizeof(names), p->allocs.v[i].ops->name);
	if (!*names)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-allocator",
				 "only the program itself can give its memory back",
				 "no allocator was found in process %d that could trim", p->t.pid);
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-allocator",
			 "`check` shows whose malloc the program uses",
			 "none of the allocators mapped in process %d is in use: %s", p->t.pid,
			 names);
}

void prediction_add(struct prediction *sum, const struct prediction *p)
{
	sum->known &= p->known;
	sum->bytes += p->bytes;
	sum->ranges += p->ranges;
	sum->duration_ns += p->duration_ns;
	sum->locked += p->locked;
	sum->hugetlb += p->hugetlb;
	sum->moving |= p->moving;
	sum->partial |= p->partial;
	sum->most |= p->most;
}

/* Trims with one allocator; now is the usage before it and becomes the one after it. */
static int trim_one(struct process *p, const struct allocator *a, uint64_t pad, struct usage *now,
		    struct trim_part *part, struct diag *d)
{
	struct usage after;
	int rc;

	*part = (struct trim_part){ 0 };
	snprintf(part->name, sizeof(part->name), "%s", a->ops->name);
	snprintf(part->file, sizeof(part->file), "%s", a->file);
	snprintf(part->version, sizeof(part->version), "%s", a->version);
	rc = a->ops->predict ? a->ops->predict(p, a, pad, &part->predicted, d) : 0;
	if (!rc)
		rc = a->ops->trim(p, a, pad, part, d);
	if (rc)
		return rc;
	rc = usage_read(&p->t, &after, d);
	if (rc)
		return rc;
	part->returned_bytes = returned(now, &after);
	*now = after;
	return 0;
}

/*
 * Each allocator in use. One that cannot be trimmed does not keep the others from it; its diag is
 * the result only if none could.
 */
static int trim_all(struct process *p, uint64_t pad, struct trim_report *r, struct diag *d)
{
	struct diag first = { 0 };
	int first_rc = 0;

	for (size_t i = 0; i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];
		struct diag one = { 0 };
		int rc;

		if (!allocator_asked(p, a))
			continue;
		rc = trim_one(p, a, pad, &r->after, &r->part[r->parts], &one);
		if (!rc) {
			prediction_add(&r->predicted, &r->part[r->parts++].predicted);
			continue;
		}
		if (ends_it(&one)) {
			*d = one;
			return rc;
		}
		if (!first_rc) {
			first_rc = rc;
			first = one;
		}
	}
	r->untrimmed = first;
	if (r->parts)
		return 0;
	if (!first_rc)
		return nothing_to_trim(p, d);
	*d = first;
	return first_rc;
}

/* Holds since h0 was taken. The longest one is exact for one hold, else that of the session. */
static void held_since(const struct process *p, const struct held *h0, struct held *out)
{
	struct held now;

	process_held(p, &now);
	*out = (struct held){
		.threads = now.threads - h0->threads,
		.total_ns = now.total_ns - h0->total_ns,
	};
	if (out->threads) {
		out->last_ns = now.last_ns;
		out->max_ns = out->threads == 1 ? now.last_ns : now.max_ns;
	}
}

/* Is there an allocator in use (which can be called)? */
static bool any_in_use(const struct process *p, bool callable)
{
	for (size_t i = 0; i < p->allocs.n; i++)
		if (allocator_asked(p, &p->allocs.v[i]) &&
		    (!callable || allocator_callable(&p->allocs.v[i])))
			return true;
	return false;
}

static int run(struct process *p, uint64_t pad, struct trim_report *out, struct diag *d)
{
	uint64_t flt0 = 0, flt1 = 0;
	struct held h0;
	int rc;

	*out = (struct trim_report){ .via = "", .predicted.known = true };
	process_held(p, &h0);
	/* Nobody is held where nothing can be called; a process that refuses all calls says why. */
	if (p->pre.injectable && !any_in_use(p, true))
		return any_in_use(p, false) ? trim_all(p, pad, out, d) : nothing_to_trim(p, d);
	/* one look at the heap tells whether the call survives it, and what it will return */
	rc = p->session || p->pre.injectable ? glibc_picture_keep(p, pad, d) : 0;
	if (!rc)
		rc = process_ready(p, d);
	if (rc)
		return rc;
	out->via = session_via(p->session);
	/* With the session open, so that what it needs itself is in both numbers. */
	rc = usage_read(&p->t, &out->before, d);
	if (rc)
		return rc;
	out->after = out->before;
	rc = minflt_read(p->t.procfd, &flt0);
	if (rc)
		return target_unreadable(&p->t, "/stat", rc, d);
	rc = trim_all(p, pad, out, d);
	held_since(p, &h0, &out->held);
	if (rc)
		return rc;
	out->minflt = flt0;
	if (minflt_read(p->t.procfd, &flt1) == 0 && flt1 > flt0) {
		out->minflt = flt1;
		out->minflt_delta = flt1 - flt0;
	}
	out->returned_bytes = returned(&out->before, &out->after);
	return 0;
}

int trim_run(struct process *p, uint64_t pad, struct trim_report *out, struct diag *d)
{
	int rc = run(p, pad, out, d);

	glibc_picture_drop(p);
	return rc;
}
