// SPDX-License-Identifier: GPL-3.0-or-later
#include "ctl_rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned ctl_version(const char *text)
{
	unsigned v = 0;

	for (int part = 0; part < 3; part++) {
		char *end;
		unsigned long n = strtoul(text, &end, 10);

		if (end == text || *text < '0' || *text > '9' || n > 255 ||
		    (part < 2 && *end != '.'))
			return 0;
		v = v << 8 | (unsigned)n;
		text = end + 1;
	}
	return v;
}

/* Why a type cannot be passed from outside. */
static const char *other_reason(const struct ctl_name *row)
{
	if (strstr(row->ctype, "_t") && strstr(row->condition, "private ABI"))
		return "its structure is private to one version of jemalloc";
	if (strstr(row->ctype, "hook") || strstr(row->ctype, "callback") ||
	    strstr(row->ctype, "_cb_"))
		return "it takes functions that would run in the target";
	if (strchr(row->ctype, '*'))
		return "it passes addresses of the target's own memory";
	return "it is a structure, not a single value";
}

static int check_forbidden(const struct ctl_name *row, const char *name, struct diag *d)
{
	if (row->type == CTL_OTHER)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "mallctl-type",
				 "`mallctl --list` shows the names that can be used",
				 "%.100s has type %s: %s", name, row->ctype, other_reason(row));
	if (row->forbidden)
		return diag_fail(
			d, -EPERM, HM_UNSAFE, "mallctl-forbidden",
			"only the program itself can know when that is safe",
			"%.100s is never used from outside: it could destroy or leak what the "
			"program still uses",
			name);
	return 0;
}

/*
 * Purging threads would be made by the thread that calls, which is not one of the application's:
 * they would share its descriptor table (clone(2), CLONE_FILES) and live on after it.
 */
int ctl_check_value(const struct ctl_name *row, const struct ctl_value *value, struct diag *d)
{
	if (strcmp(row->name, "background_thread") != 0 || !value->b)
		return 0;
	return diag_fail(d, -EPERM, HM_UNSAFE, "mallctl-forbidden",
			 "start the program with MALLOC_CONF=background_thread:true, or lower "
			 "arenas.dirty_decay_ms",
			 "background_thread = true would start threads in the target from outside");
}

/*
 * jemalloc lets two indices beyond its arenas through to every arena.<i> name, 4096 for all and
 * 4097 for the destroyed ones (MALLCTL_ARENAS_*), and most of those names then read behind the end
 * of its table of arenas (MALLOCX_ARENA_LIMIT, 4095 entries): that kills the process.
 */
static int check_index(const struct ctl_name *row, const char *name, struct diag *d)
{
	static const char prefix[] = "arena.";
	unsigned long index;

	if (strncmp(row->name, "arena.<i>", 9) != 0)
		return 0;
	name += sizeof(prefix) - 1;
	index = strncmp(name, "all", 3) == 0 ? 4096 : strtoul(name, NULL, 10);
	if (index < 4095 || (index == 4096 && strstr(row->condition, "i may be 4096")))
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "mallctl-index",
			 "give the number of one arena; arenas.narenas says how many there are",
			 index == 4096 ? "%.100s: this name is not for all arenas at once"
				       : "%.100s: no arena has this number",
			 name - (sizeof(prefix) - 1));
}

int ctl_check(const struct ctl_name *row, const char *name, bool write, struct diag *d)
{
	int rc = check_forbidden(row, name, d);

	if (rc < 0)
		return rc;
	if (ctl_is_pattern(name))
		return diag_fail(
			d, -EINVAL, HM_USAGE, "mallctl-index",
			"put a number in its place, or all: arena.0.purge, arena.all.purge",
			"%.100s has an index that is not filled in", name);
	rc = check_index(row, name, d);
	if (rc < 0)
		return rc;
	if (write && row->type == CTL_VOID)
		return diag_fail(d, -EINVAL, HM_USAGE, "mallctl-no-value",
				 "leave the value away: the name alone is the call",
				 "%.100s takes no value", name);
	if (write && !(row->access & CTL_WRITE))
		return ctl_error(row, name, "", true, EPERM, d);
	if (!write && row->type != CTL_VOID && !(row->access & CTL_READ))
		return diag_fail(d, -EINVAL, HM_USAGE, "mallctl-needs-value",
				 "give the value after the name",
				 "%.100s can only be written, and takes a %s", name, row->ctype);
	return 0;
}

/* Build and start conditions (column 4 of the table) that make a name answer ENOENT. */
static const struct condition_fact {
	const char *condition;
	const char *text, *hint;
} conditions[] = {
	{ "prof & opt.prof & opt.prof_stats",
	  "heap profiling with per-class statistics was not enabled when the program started",
	  "it needs a jemalloc built with --enable-prof and a start with "
	  "MALLOC_CONF=prof:true,prof_stats:true" },
	{ "prof & opt.prof", "heap profiling was not enabled when the program started",
	  "read config.prof: if true, start the program with MALLOC_CONF=prof:true; if false, "
	  "jemalloc was built without --enable-prof" },
	{ "prof",
	  "this jemalloc was built without heap profiling, or the program not started with it",
	  "read config.prof and opt.prof: it needs a build with --enable-prof, and to be switched "
	  "on "
	  "a start with MALLOC_CONF=prof:true" },
	{ "stats", "this jemalloc was built without statistics",
	  "config.stats says false then; use a build with --enable-stats (the default)" },
	{ "background threads built", "this jemalloc was built without background threads",
	  "lower dirty_decay_ms instead: it works without them" },
	{ "fill", "this jemalloc was built without memory filling", "it needs --enable-fill" },
	{ "utrace", "this jemalloc was built without utrace", "it needs --enable-utrace" },
	{ "xmalloc", "this jemalloc was built without xmalloc", "it needs --enable-xmalloc" },
	{ "cxx", "this jemalloc was built without C++ support", "it needs --enable-cxx" },
	{ "uaf-detection", "this jemalloc was built without use-after-free detection",
	  "it needs --enable-uaf-detection" },
	{ "opt-safety-checks", "this jemalloc was built without safety checks",
	  "it needs --enable-opt-safety-checks" },
	{ "if set", "that source of options is not set in this program",
	  "config.malloc_conf has the "
	  "options compiled in" },
	{ "opt.retain", "this program does not keep address space (opt.retain is false)",
	  "start it with MALLOC_CONF=retain:true" },
};

/* The part of a condition ("a; b; c") that starts with key: what follows key, or NULL. */
static const char *condition_part(const char *condition, const char *key)
{
	for (const char *s = condition; *s;) {
		const char *next = strstr(s, "; ");

		if (!strncmp(s, key, strlen(key)))
			return s + strlen(key);
		if (!next)
			break;
		s = next + 2;
	}
	return NULL;
}

/* Says so if this version cannot have the name. */
static bool missing_in_version(const struct ctl_name *row, const char *version, char *text,
			       size_t size)
{
	unsigned have = ctl_version(version);
	const char *since = condition_part(row->condition, "since ");
	const char *after = condition_part(row->condition, "after ");
	const char *gone = condition_part(row->condition, "gone in ");
	const char *gone_after = condition_part(row->condition, "gone after ");

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

static const struct condition_fact *condition_fact(const struct ctl_name *row)
{
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		const char *rest = condition_part(row->condition, conditions[i].condition);

		if (rest && (!*rest || *rest == ';'))
			return &conditions[i];
	}
	return NULL;
}

static int error_noent(const struct ctl_name *row, const char *name, const char *version,
		       struct diag *d)
{
	const struct condition_fact *f = condition_fact(row);
	char text[128];

	if (missing_in_version(row, version, text, sizeof(text)))
		return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-version",
				 "`mallctl --list` with this target shows which names have a value",
				 "%.100s: %s", name, text);
	if (f)
		return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-not-built", f->hint,
				 "%.100s: %s (ENOENT)", name, f->text);
	if (strchr(row->name, '<'))
		return diag_fail(
			d, -ENOENT, HM_CALL_FAILED, "mallctl-no-index",
			"read arenas.narenas, arenas.nbins or arenas.nlextents for how many "
			"there are",
			"%.100s: the target has nothing with this index (ENOENT)", name);
	return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-not-built",
			 "`mallctl --list` shows the names that can be used",
			 "%.100s: jemalloc%s%s in the target does not know it (ENOENT)", name,
			 *version ? " " : "", version);
}

static int error_fault(const struct ctl_name *row, const char *name, struct diag *d)
{
	if (!strncmp(row->name, "arena.<i>", 9) || !strncmp(row->name, "stats.arenas.<i>", 16))
		return diag_fail(d, -EFAULT, HM_CALL_FAILED, "mallctl-no-arena",
				 "arena.<i>.initialized says which arenas exist",
				 "%.100s: that arena does not exist, or the value is not accepted "
				 "for it (EFAULT)",
				 name);
	if (!strncmp(row->name, "prof.dump", 9) || !strncmp(row->name, "prof.log", 8))
		return diag_fail(d, -EFAULT, HM_CALL_FAILED, "mallctl-file",
				 "name a file in a directory that the target may write to",
				 "%.100s: the target could not write the file (EFAULT)", name);
	if (row->acts_on_caller)
		return diag_fail(d, -EFAULT, HM_CALL_FAILED, "mallctl-thread",
				 "thread.* names act on the thread that makes the call only",
				 "%.100s: the calling thread has no cache of its own (EFAULT)",
				 name);
	return diag_fail(d, -EFAULT, HM_CALL_FAILED, "mallctl-refused",
			 "`mallctl --list` has the meaning of the name",
			 "%.100s: jemalloc could not do it (EFAULT)", name);
}

int ctl_error(const struct ctl_name *row, const char *name, const char *version, bool write, int rc,
	      struct diag *d)
{
	switch (rc) {
	case ENOENT:
		return error_noent(row, name, version, d);
	case EFAULT:
		return error_fault(row, name, d);
	case EPERM:
		return diag_fail(d, -EPERM, HM_CALL_FAILED, "mallctl-read-only",
				 strncmp(row->name, "opt.", 4) != 0
					 ? "read it without a value"
					 : "options are fixed when the program starts: set it in "
					   "MALLOC_CONF then",
				 "%.100s can only be %s (EPERM)", name, write ? "read" : "written");
	case EINVAL:
		return diag_fail(d, -EINVAL, HM_CALL_FAILED, "mallctl-invalid",
				 write ? "read the name for a value that is accepted"
				       : "this build differs from the table; see `stats`",
				 write ? "%.100s: the value is out of range, or not a %s in this "
					 "build (EINVAL)"
				       : "%.100s is not a %s in this build (EINVAL)",
				 name, row->ctype);
	case EAGAIN:
		return diag_fail(d, -EAGAIN, HM_CALL_FAILED, "mallctl-again",
				 "try again; if it stays, the target is out of memory",
				 "%.100s: jemalloc had no memory for it, or it was busy (EAGAIN)",
				 name);
	case ENOMEM:
		return diag_fail(d, -ENOMEM, HM_CALL_FAILED, "mallctl-memory",
				 "raise the memory limit, or trim first",
				 "%.100s: jemalloc had no memory for it (ENOMEM)", name);
	default:
		/* mallctl returns an errno; anything else is not jemalloc's mallctl. */
		rc = rc > 0 && rc < 4096 ? rc : EPROTO;
		return diag_fail(d, -rc, HM_CALL_FAILED, "mallctl-failed",
				 "`mallctl --list` has the meaning of the name",
				 "%.100s: mallctl returned %d (%s)", name, rc, strerror(rc));
	}
}
