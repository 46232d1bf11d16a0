// SPDX-License-Identifier: GPL-3.0-or-later
#include "tally.h"

#include <errno.h>
#include <stdio.h>

enum { PID, NAME, EXIT, RESULT, BEFORE, AFTER, CHANGE, COLUMNS };

static const char *size_or_dash(char buf[SIZE_TEXT], uint64_t bytes, bool raw)
{
	return bytes ? text_size(buf, bytes, raw) : "-";
}

static const char *result_of(const struct tally_row *r)
{
	if (!r->reached)
		return "not reached";
	return r->exit == HM_OK ? "ok" : r->code;
}

static void add(struct table *t, const struct tally_row *r, const char *pid, bool bytes)
{
	char exit[16] = "-", before[SIZE_TEXT], after[SIZE_TEXT], change[SIZE_TEXT];
	bool known = r->before && r->after;

	if (r->reached)
		snprintf(exit, sizeof(exit), "%d", (int)r->exit);
	table_row(t, (const char *const[COLUMNS]){
			     [PID] = pid,
			     [NAME] = r->comm,
			     [EXIT] = exit,
			     [RESULT] = result_of(r),
			     [BEFORE] = size_or_dash(before, r->before, bytes),
			     [AFTER] = size_or_dash(after, r->after, bytes),
			     [CHANGE] = known ? text_delta(change, (int64_t)(r->after - r->before),
							   bytes)
					      : "-" });
}

/* The highest code, and the sums of those whose RSS is known both times. */
static struct tally_row sum_up(const struct tally_row *v, size_t n, size_t *failed)
{
	struct tally_row all = { .reached = true };

	*failed = 0;
	for (size_t i = 0; i < n; i++) {
		*failed += !v[i].reached || v[i].exit != HM_OK;
		if (v[i].exit > all.exit)
			all.exit = v[i].exit;
		if (!v[i].before || !v[i].after)
			continue;
		all.before += v[i].before;
		all.after += v[i].after;
	}
	return all;
}

int tally_print(const struct tally_row *v, size_t n, bool bytes, struct sink *s)
{
	static const struct column columns[COLUMNS] = {
		[PID] = { "PID", true },	   [NAME] = { "NAME", false },
		[EXIT] = { "EXIT", true },	   [RESULT] = { "RESULT", false },
		[BEFORE] = { "RSS BEFORE", true }, [AFTER] = { "RSS AFTER", true },
		[CHANGE] = { "CHANGE", true },
	};
	static const unsigned optional[] = { AFTER, BEFORE };
	struct table *t = table_new(columns, COLUMNS);
	struct tally_row all;
	size_t failed;
	char pid[16];
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		snprintf(pid, sizeof(pid), "%d", (int)v[i].pid);
		add(t, &v[i], pid, bytes);
	}
	all = sum_up(v, n, &failed);
	snprintf(all.comm, sizeof(all.comm), "%zu processes", n);
	snprintf(all.code, sizeof(all.code), "%zu failed", failed);
	add(t, &all, "total", bytes);
	table_optional(t, optional, sizeof(optional) / sizeof(optional[0]));
	fputc('\n', s->out);
	err = table_print(t, s);
	table_free(t);
	return err;
}
