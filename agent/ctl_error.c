// SPDX-License-Identifier: GPL-3.0-or-later
#include "ctl_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl_rule.h"

/* ---- ENOENT: not in this version, not in this build, not enabled, or no such index */

bool ctl_missing_in(const struct ctl_name *row, const char *version, char *text, size_t size)
{
	unsigned have = ctl_version(version);
	const char *since = ctl_condition_part(row->condition, "since ");
	const char *after = ctl_condition_part(row->condition, "after ");
	const char *gone = ctl_condition_part(row->condition, "gone in ");
	const char *gone_after = ctl_condition_part(row->condition, "gone after ");

	if (!have)
		return false;
	if (since && have < ctl_version(since))
		snprintf(text, size, "it came with %.5s, the target has %s", since, version);
	else if (after && have <= ctl_version(after))
		snprintf(text, size, "it came after %.5s, the target has %s", after, version);
	else if (gone && have >= ctl_version(gone))
		snprintf(text, size, "it was removed in %.5s, the target has %s", gone, version);
	else if (gone_after && have > ctl_version(gone_after))
		snprintf(text, size, "it was removed after %.5s, the target has %s", gone_after,
			 version);
	else
		return false;
	return true;
}

static int error_noent(const struct ctl_name *row, const char *name, const struct ctl_build *b,
		       struct diag *d)
{
	struct ctl_reason why;
	char text[128];

	if (ctl_missing_in(row, b->version, text, sizeof(text)))
		return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-version",
				 "`mallctl --list` with this target shows which names have a value",
				 "%.100s: %s", name, text);
	if (ctl_build_reason(b, row->condition, &why))
		return diag_fail(d, -ENOENT, HM_CALL_FAILED, why.code, why.hint,
				 "%.100s: %s (ENOENT)", name, why.text);
	if (!strncmp(row->name, "stats.arenas.<i>", 16))
		return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-no-arena",
				 "`arenas` lists those that are in use",
				 "%.100s: that arena is not initialised, no thread has used it, or "
				 "an index is too large (ENOENT)",
				 name);
	if (strchr(row->name, '<'))
		return diag_fail(
			d, -ENOENT, HM_CALL_FAILED, "mallctl-no-index",
			"read arenas.narenas, arenas.nbins or arenas.nlextents for how many "
			"there are",
			"%.100s: the target has nothing with this index (ENOENT)", name);
	return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-not-built",
			 "`mallctl --list` shows the names that can be used",
			 "%.100s: jemalloc%s%s in the target does not know it (ENOENT)", name,
			 *b->version ? " " : "", b->version);
}

/* ---- the other codes */

enum when { ANY, READ, WRITE };

/* The first row that fits: code, beginning of the name in the table, and what was done. */
static const struct refusal {
	int rc;
	enum when when;
	const char *name; /* how it begins in the table */
	const char *code, *text, *hint;
} refusals[] = {
	{ EFAULT, WRITE, "arena.<i>.retain_grow_limit", "mallctl-invalid",
	  "the limit is less than a page, or that arena is not initialised",
	  "write a size from arenas.page on; `arenas` lists the arenas that are initialised" },
	{ EFAULT, ANY, "arena.<i>.", "mallctl-no-arena",
	  "that arena is not initialised: no thread has used it, and asking does not make it",
	  "`arenas` lists those that are; arenas.dirty_decay_ms and its like are the defaults of "
	  "arenas made later" },
	{ EFAULT, WRITE, "arenas.", "mallctl-invalid", "jemalloc does not accept this value",
	  "read the name for one that it accepts" },
	{ EFAULT, ANY, "prof.dump", "mallctl-file", "the target could not write the file",
	  "name a file in a directory that the target itself may write to, as it sees it" },
	{ EFAULT, ANY, "prof.log", "mallctl-file",
	  "the target could not write the log, or none is "
	  "being written",
	  "name a file in a directory that the target itself may write to, as it sees it" },
	{ EFAULT, WRITE, "thread.arena", "mallctl-no-arena", "there is no arena with this index",
	  "arenas.narenas says how many there are" },
	{ EFAULT, ANY, "thread.tcache", "mallctl-thread",
	  "the calling thread has no cache of its own",
	  "thread.* names act on the thread that makes the call only, which is heapmedic's" },
	{ EFAULT, ANY, "thread.", "mallctl-thread", "not possible for the calling thread",
	  "thread.* names act on the thread that makes the call only, which is heapmedic's" },
	{ EFAULT, ANY, "background_thread", "mallctl-refused",
	  "jemalloc could not start or end its threads",
	  "look at the limits of processes and threads (`check`)" },
	{ EFAULT, ANY, "", "mallctl-refused", "jemalloc could not do it",
	  "`mallctl --list` has the meaning of the name" },

	{ EPERM, WRITE, "opt.", "mallctl-read-only", "can only be read",
	  "options are fixed when the program starts: set it in %s then" },
	{ EPERM, WRITE, "config.", "mallctl-read-only", "can only be read",
	  "it is fixed when jemalloc is built" },
	{ EPERM, WRITE, "thread.arena", "mallctl-refused",
	  "arenas belong to CPUs in this program (opt.percpu_arena), a thread cannot choose",
	  "start it without percpu_arena" },
	{ EPERM, WRITE, "", "mallctl-read-only", "can only be read", "read it without a value" },
	{ EPERM, READ, "", "mallctl-read-only", "can only be written",
	  "give a value after the name" },

	{ EINVAL, WRITE, "arena.<i>.dss", "mallctl-invalid", "no such precedence",
	  "write disabled, primary or secondary" },
	{ EINVAL, WRITE, "thread.prof.name", "mallctl-invalid",
	  "a name of printable characters is wanted", "leave control characters out" },
	{ EINVAL, WRITE, "", "mallctl-invalid",
	  "the value is out of range, or of another type in this build",
	  "read the name for a value that is accepted" },
	{ EINVAL, READ, "", "mallctl-invalid", "it is of another type in this build",
	  "`stats` prints it too" },

	{ EAGAIN, ANY, "arenas.", "mallctl-again", "jemalloc had no memory for another arena",
	  "look at the target's memory limits; a trim may make room" },
	{ EAGAIN, ANY, "thread.", "mallctl-again",
	  "jemalloc had no memory for what belongs to the calling thread",
	  "look at the target's memory limits; a trim may make room" },
	{ EAGAIN, ANY, "", "mallctl-again",
	  "jemalloc could not set up its statistics: it had no memory for them, or is not "
	  "initialised yet",
	  "try again when the program has allocated something; if it stays, look at its memory "
	  "limits" },

	{ ENOMEM, ANY, "", "mallctl-memory", "jemalloc had no memory for it",
	  "raise the memory limit, or trim first" },
};

static const struct refusal *refusal_of(const struct ctl_name *row, bool write, int rc)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];

		if (r->rc == rc && (r->when == ANY || (r->when == WRITE) == write) &&
		    !strncmp(row->name, r->name, strlen(r->name)))
			return r;
	}
	return NULL;
}

static const char *code_name(int rc)
{
	static const struct {
		int rc;
		const char *name;
	} names[] = {
		{ EFAULT, "EFAULT" }, { EPERM, "EPERM" },   { EINVAL, "EINVAL" },
		{ EAGAIN, "EAGAIN" }, { ENOMEM, "ENOMEM" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].rc == rc)
			return names[i].name;
	return "";
}

/* It is writable elsewhere, but not in this one. */
static int error_not_here(const struct ctl_name *row, const char *name, const struct ctl_build *b,
			  struct diag *d)
{
	return diag_fail(d, -EPERM, HM_CALL_FAILED, "mallctl-read-only", "read it without a value",
			 "%.100s can be written in other versions, but jemalloc%s%s of the target "
			 "refuses it (EPERM); a %s stands there",
			 name, *b->version ? " " : "", b->version, row->ctype);
}

int ctl_error(const struct ctl_name *row, const char *name, const struct ctl_build *b, bool write,
	      int rc, struct diag *d)
{
	const struct refusal *r;
	char hint[256];

	if (rc == ENOENT)
		return error_noent(row, name, b, d);
	r = refusal_of(row, write, rc);
	if (r && rc == EPERM && write && (row->access & CTL_WRITE) && *r->name == '\0')
		return error_not_here(row, name, b, d);
	if (r) {
		ctl_build_hint(b, r->hint, hint, sizeof(hint));
		return diag_fail(d, -rc, HM_CALL_FAILED, r->code, hint, "%.100s%s %s (%s)", name,
				 rc == EPERM && strncmp(r->text, "can ", 4) == 0 ? "" : ":",
				 r->text, code_name(rc));
	}
	/* mallctl returns an errno; anything else is not jemalloc's mallctl. */
	rc = rc > 0 && rc < 4096 ? rc : EPROTO;
	return diag_fail(d, -rc, HM_CALL_FAILED, "mallctl-failed",
			 "`mallctl --list` has the meaning of the name",
			 "%.100s: mallctl returned %d (%s)", name, rc, strerror(rc));
}

int ctl_error_size(const struct ctl_name *row, const char *name, const struct ctl_build *b,
		   uint64_t got, struct diag *d)
{
	return diag_fail(d, -EINVAL, HM_CALL_FAILED, "mallctl-size",
			 "this build has another type there; `stats` prints it too",
			 "%.100s: jemalloc%s%s of the target has %llu bytes for it, a %s has %zu "
			 "(EINVAL)",
			 name, *b->version ? " " : "", b->version, (unsigned long long)got,
			 row->ctype, ctl_size(row->type));
}
