// SPDX-License-Identifier: GPL-3.0-or-later
#include "ctl_rule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_error.h"

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

/* The longest decay time: NSTIME_SEC_MAX, 2^64 ns in whole seconds (jemalloc, nstime.h). */
#define DECAY_MS_MAX ((int64_t)18446744072 * 1000)

static bool is_decay_ms(const struct ctl_name *row)
{
	const char *end = strstr(row->name, "_decay_ms");

	return end && !end[sizeof("_decay_ms") - 1];
}

/*
 * Purging threads would be made by the thread that calls, which is not one of the application's:
 * they would share its descriptor table (clone(2), CLONE_FILES) and live on after it. A new ceiling
 * ends them and starts them again (jemalloc, max_background_threads_ctl).
 */
int ctl_check_value(const struct ctl_name *row, const struct ctl_value *value, struct diag *d)
{
	if (is_decay_ms(row) && (value->i < -1 || value->i > DECAY_MS_MAX))
		return diag_fail(d, -ERANGE, HM_USAGE, "bad-value",
				 "write milliseconds, 0 for at once, -1 for never",
				 "%s: %" PRId64 " is no time: -1 to %" PRId64, row->name, value->i,
				 DECAY_MS_MAX);
	if (strcmp(row->name, "background_thread") == 0 && value->b)
		return diag_fail(d, -EPERM, HM_UNSAFE, "mallctl-forbidden",
				 "`background_thread on` says what that means and asks; or lower "
				 "the decay times (`decay`)",
				 "background_thread = true would start threads in the target from "
				 "outside");
	if (strcmp(row->name, "max_background_threads") == 0)
		return diag_fail(d, -EPERM, HM_UNSAFE, "mallctl-forbidden",
				 "start the program with max_background_threads:N among its "
				 "options",
				 "max_background_threads: a new ceiling ends the purging threads "
				 "and starts new ones from outside");
	return 0;
}

bool ctl_takes_all(const struct ctl_name *row)
{
	return ctl_condition_part(row->condition, "i may be 4096") ||
	       strncmp(row->name, "stats.arenas.<i>", 16) == 0;
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
	/* `all` is either that index or a sweep over those that there are */
	if (strncmp(name, "all", 3) == 0)
		return 0;
	index = strtoul(name, NULL, 10);
	if (index < 4095 || (index == 4096 && ctl_takes_all(row)))
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
		return ctl_error(row, name, &(struct ctl_build){ 0 }, true, EPERM, d);
	if (!write && row->type != CTL_VOID && !(row->access & CTL_READ))
		return diag_fail(d, -EINVAL, HM_USAGE, "mallctl-needs-value",
				 "give the value after the name",
				 "%.100s can only be written, and takes a %s", name, row->ctype);
	return 0;
}
