// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/ctl_error.h"
#include "../../agent/ctl_rule.h"
#include "../../agent/mallctl.h"

/* The table is the file: row by row, and every type is known. */
Test(mallctl, table_is_the_list)
{
	FILE *f = fopen("agent/mallctl.tsv", "r");
	char line[1024];
	size_t n, row = 0, other = 0;
	const struct ctl_name *t = ctl_table(&n);

	cr_assert(f, "agent/mallctl.tsv (run the tests from the top directory)");
	cr_assert(fgets(line, sizeof(line), f));
	while (fgets(line, sizeof(line), f)) {
		size_t len = strcspn(line, "\t");
		const char *type = line + len + 1;

		cr_assert(row < n);
		line[len] = '\0';
		cr_expect_str_eq(t[row].name, line);
		cr_expect(!strncmp(t[row].ctype, type, strlen(t[row].ctype)), "%s", line);
		other += t[row].type == CTL_OTHER;
		row++;
	}
	cr_expect_eq(row, n);
	cr_expect(other > 0 && other < 40, "%zu names have no usable type", other);
	fclose(f);
}

static const struct {
	const char *name;
	enum ctl_type type;
	unsigned access;
	bool forbidden, caller;
} rows[] = {
	{ "version", CTL_STRING, CTL_READ, false, false },
	{ "epoch", CTL_U64, CTL_READ | CTL_WRITE, false, false },
	{ "arenas.narenas", CTL_UNSIGNED, CTL_READ, false, false },
	{ "opt.background_thread", CTL_BOOL, CTL_READ, false, false },
	{ "arena.0.purge", CTL_VOID, 0, false, false },
	{ "arena.all.purge", CTL_VOID, 0, false, false },
	{ "arena.4096.purge", CTL_VOID, 0, false, false },
	{ "arena.<i>.purge", CTL_VOID, 0, false, false },
	{ "arena.3.dirty_decay_ms", CTL_SSIZE, CTL_READ | CTL_WRITE, false, false },
	{ "stats.arenas.1.bins.12.curregs", CTL_SIZE, CTL_READ, false, false },
	{ "arenas.bin.3.nregs", CTL_U32, CTL_READ, false, false },
	{ "opt.stats_interval", CTL_SSIZE, CTL_READ, false, false },
	{ "arena.0.reset", CTL_VOID, 0, true, false },
	{ "arena.7.destroy", CTL_VOID, 0, true, false },
	{ "arena.0.extent_hooks", CTL_OTHER, CTL_READ | CTL_WRITE, true, false },
	{ "tcache.destroy", CTL_UNSIGNED, CTL_WRITE, true, false },
	{ "experimental.prof_recent.alloc_max", CTL_SSIZE, CTL_READ | CTL_WRITE, true, false },
	{ "thread.tcache.flush", CTL_VOID, 0, false, true },
	{ "thread.prof.name", CTL_STRING, CTL_READ | CTL_WRITE, false, true },
	{ "prof.stats.bins.0.live", CTL_OTHER, CTL_READ, false, false },
};

Test(mallctl, find)
{
	static const char *const unknown[] = {
		"",
		".",
		"versio",
		"version.",
		"versions",
		"arena.purge",
		"arena..purge",
		"arena.x.purge",
		"arena.0x1.purge",
		"arena.-1.purge",
		"arena.0.purge.",
		"arena.0",
		"arena.alles.purge",
		"stats.arenas.1.bins.curregs",
		"arena.0 .purge",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ctl_name *r = ctl_find(rows[i].name);

		cr_assert(r, "%s", rows[i].name);
		cr_expect_eq(r->type, rows[i].type, "%s", rows[i].name);
		cr_expect_eq(r->access, rows[i].access, "%s", rows[i].name);
		cr_expect_eq(r->forbidden, rows[i].forbidden, "%s", rows[i].name);
		cr_expect_eq(r->acts_on_caller, rows[i].caller, "%s", rows[i].name);
		cr_expect(*r->meaning && *r->ctype);
		cr_expect(strcmp(r->condition, "-") != 0);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		cr_expect_null(ctl_find(unknown[i]), "'%s'", unknown[i]);
}

/* Each name, with numbers for its indices, leads back to its own row. */
Test(mallctl, find_is_unambiguous)
{
	size_t n;
	const struct ctl_name *t = ctl_table(&n);

	for (size_t i = 0; i < n; i++) {
		char name[128];
		size_t o = 0;

		for (const char *s = t[i].name; *s;) {
			if (*s == '<') {
				o += (size_t)sprintf(name + o, "12");
				s += 3;
			} else {
				name[o++] = *s++;
			}
		}
		name[o] = '\0';
		cr_expect_eq(ctl_find(name), &t[i], "%s", name);
	}
}

Test(mallctl, suggests_the_nearest)
{
	static const struct {
		const char *typed, *near;
	} words[] = {
		{ "stats.alocated", "stats.allocated" },
		{ "arena.0.purg", "arena.<i>.purge" },
		{ "stats.arenas.3.pdirt", "stats.arenas.<i>.pdirty" },
		{ "verzion", "version" },
		{ "background_threads", "background_thread" },
		{ "stats.arenas.0.bins.1.curreg", "stats.arenas.<i>.bins.<j>.curregs" },
	};
	const char *out[3];
	struct diag d = { 0 };
	char longer[4096];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		cr_assert(ctl_suggest(words[i].typed, out, 3) >= 1, "%s", words[i].typed);
		cr_expect_str_eq(out[0], words[i].near);
	}
	cr_expect_eq(ctl_suggest("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", out, 3), 0);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	cr_expect_eq(ctl_suggest(longer, out, 3), 0);
	cr_expect_eq(ctl_unknown("stats.alocated", &d), -ENOENT);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_expect(strstr(d.hint, "stats.allocated"), "%s", d.hint);
	cr_expect_eq(ctl_unknown(longer, &d), -ENOENT);
}

static const struct {
	const char *name, *text;
	int rc;
	const char *shown;
} values[] = {
	{ "background_thread", "true", 0, "true" },
	{ "background_thread", "off", 0, "false" },
	{ "background_thread", "1", 0, "true" },
	{ "background_thread", "2", -EINVAL, "" },
	{ "background_thread", "TRUE", -EINVAL, "" },
	{ "epoch", "18446744073709551615", 0, "18446744073709551615" },
	{ "epoch", "18446744073709551616", -ERANGE, "" },
	{ "epoch", "-1", -EINVAL, "" },
	{ "epoch", "+1", -EINVAL, "" },
	{ "epoch", " 1", -EINVAL, "" },
	{ "epoch", "", -EINVAL, "" },
	{ "thread.arena", "4294967295", 0, "4294967295" },
	{ "thread.arena", "4294967296", -ERANGE, "" },
	{ "max_background_threads", "4", 0, "4" },
	{ "arena.<i>.oversize_threshold", "8M", 0, "8388608" },
	{ "arena.<i>.oversize_threshold", "8Q", -EINVAL, "" },
	{ "arena.<i>.dirty_decay_ms", "-1", 0, "-1" },
	{ "arena.<i>.dirty_decay_ms", "10000", 0, "10000" },
	{ "arena.<i>.dirty_decay_ms", "10s", -EINVAL, "" },
	{ "arena.<i>.dirty_decay_ms", "-", -EINVAL, "" },
	{ "arena.<i>.dirty_decay_ms", "9223372036854775808", -ERANGE, "" },
	{ "arena.<i>.dss", "secondary", 0, "secondary" },
	{ "arena.<i>.purge", "1", -EINVAL, "" },
};

Test(mallctl, values)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct ctl_name *row = ctl_find(values[i].name);
		struct ctl_value v, back;
		struct diag d = { 0 };
		unsigned char raw[8];
		char shown[64];
		int rc;

		cr_assert(row);
		rc = ctl_value_parse(row, values[i].text, &v, &d);
		cr_expect_eq(rc, values[i].rc, "%s %s: %d", values[i].name, values[i].text, rc);
		if (rc) {
			cr_expect_eq(d.exit, HM_USAGE);
			cr_expect(*d.hint);
			continue;
		}
		ctl_value_format(&v, shown, sizeof(shown));
		cr_expect_str_eq(shown, values[i].shown);
		if (v.type == CTL_STRING)
			continue;
		cr_assert_eq(ctl_value_encode(&v, raw), 0);
		cr_assert_eq(ctl_value_decode(row->type, raw, &back), 0);
		ctl_value_format(&back, shown, sizeof(shown));
		cr_expect_str_eq(shown, values[i].shown);
	}
}

/* Only the type's own bytes are looked at; the rest of the eight may hold anything. */
Test(mallctl, decode_reads_no_more_than_the_type)
{
	const unsigned char raw[8] = { 0x01, 0x02, 0x03, 0x84, 0xff, 0xff, 0xff, 0xff };
	struct ctl_value v;

	cr_assert_eq(ctl_value_decode(CTL_UNSIGNED, raw, &v), 0);
	cr_expect_eq(v.u, 0x84030201u);
	cr_assert_eq(ctl_value_decode(CTL_U32, raw, &v), 0);
	cr_expect_eq(v.u, 0x84030201u);
	cr_assert_eq(ctl_value_decode(CTL_INT, raw, &v), 0);
	cr_expect_eq(v.i, (int64_t)(int32_t)0x84030201u);
	cr_assert_eq(ctl_value_decode(CTL_SSIZE, raw, &v), 0);
	cr_expect(v.i < 0);
	cr_assert_eq(ctl_value_decode(CTL_BOOL, raw, &v), 0);
	cr_expect(v.b);
	cr_expect_eq(ctl_value_decode(CTL_STRING, raw, &v), -EINVAL);
	cr_expect_eq(ctl_value_decode(CTL_VOID, raw, &v), -EINVAL);
}

static void check(const char *name, bool write, int rc, enum hm_exit code)
{
	const struct ctl_name *row = ctl_find(name);
	struct diag d = { 0 };

	cr_assert(row, "%s", name);
	cr_expect_eq(ctl_check(row, name, write, &d), rc, "%s: %s", name, d.text);
	cr_expect_eq(d.exit, code, "%s: exit %d", name, d.exit);
	if (rc)
		cr_expect(*d.text && *d.hint && *d.code);
}

Test(mallctl, threads_are_not_made_from_outside)
{
	const struct ctl_name *row = ctl_find("background_thread");
	struct ctl_value value;
	struct diag d = { 0 };

	cr_assert_eq(ctl_value_parse(row, "false", &value, &d), 0);
	cr_expect_eq(ctl_check_value(row, &value, &d), 0);
	cr_assert_eq(ctl_value_parse(row, "true", &value, &d), 0);
	cr_expect_eq(ctl_check_value(row, &value, &d), -EPERM);
	cr_expect_eq(d.exit, HM_UNSAFE);
	/* it ends them all, and starts new ones */
	row = ctl_find("max_background_threads");
	cr_assert_eq(ctl_value_parse(row, "2", &value, &d), 0);
	cr_expect_eq(ctl_check_value(row, &value, &d), -EPERM);
	cr_expect_eq(d.exit, HM_UNSAFE);
}

/* decay_ms_valid: -1, or as many whole seconds as nanoseconds fit into 64 bits. */
Test(mallctl, decay_times)
{
	static const char *const names[] = { "arena.<i>.dirty_decay_ms", "arena.<i>.muzzy_decay_ms",
					     "arenas.dirty_decay_ms", "arenas.muzzy_decay_ms" };
	static const struct {
		int64_t ms;
		int rc;
	} times[] = {
		{ -2, -ERANGE },
		{ INT64_MIN, -ERANGE },
		{ -1, 0 },
		{ 0, 0 },
		{ 18446744072000, 0 },
		{ 18446744072001, -ERANGE },
		{ INT64_MAX, -ERANGE },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
			struct ctl_value v = { .type = CTL_SSIZE, .i = times[k].ms };
			struct diag d = { 0 };

			cr_expect_eq(ctl_check_value(ctl_find(names[i]), &v, &d), times[k].rc);
			cr_expect_eq(d.exit, times[k].rc ? HM_USAGE : HM_OK);
		}
}

Test(mallctl, names_for_all_arenas)
{
	cr_expect(ctl_takes_all(ctl_find("arena.<i>.purge")));
	cr_expect(ctl_takes_all(ctl_find("arena.<i>.dss")));
	cr_expect(ctl_takes_all(ctl_find("stats.arenas.<i>.pdirty")));
	cr_expect_not(ctl_takes_all(ctl_find("arena.<i>.dirty_decay_ms")));
	cr_expect_not(ctl_takes_all(ctl_find("arena.<i>.initialized")));
}

Test(mallctl, check)
{
	check("version", false, 0, HM_OK);
	check("version", true, -EPERM, HM_CALL_FAILED);
	check("opt.narenas", true, -EPERM, HM_CALL_FAILED);
	check("arena.0.purge", false, 0, HM_OK);
	check("arena.0.purge", true, -EINVAL, HM_USAGE);
	check("arena.<i>.purge", false, -EINVAL, HM_USAGE);
	/* what jemalloc would read behind the end of its table for */
	check("arena.all.purge", false, 0, HM_OK);
	check("arena.4096.decay", false, 0, HM_OK);
	check("arena.all.dss", true, 0, HM_OK);
	check("arena.4097.purge", false, -EINVAL, HM_USAGE);
	check("arena.4095.purge", false, -EINVAL, HM_USAGE);
	/* a sweep over those that there are */
	check("arena.all.dirty_decay_ms", false, 0, HM_OK);
	check("arena.4096.muzzy_decay_ms", true, -EINVAL, HM_USAGE);
	check("arena.004096.retain_grow_limit", false, -EINVAL, HM_USAGE);
	check("arena.99999999999999999999.oversize_threshold", false, -EINVAL, HM_USAGE);
	check("arena.4094.dirty_decay_ms", false, 0, HM_OK);
	check("stats.arenas.all.pdirty", false, 0, HM_OK);
	check("prof.dump", false, -EINVAL, HM_USAGE);
	check("prof.dump", true, 0, HM_OK);
	check("arena.0.reset", false, -EPERM, HM_UNSAFE);
	check("tcache.create", false, -EPERM, HM_UNSAFE);
	check("experimental.prof_recent.alloc_max", false, -EPERM, HM_UNSAFE);
	check("arena.0.extent_hooks", false, -ENOTSUP, HM_UNSUPPORTED);
	check("thread.allocatedp", false, -ENOTSUP, HM_UNSUPPORTED);
	check("prof.stats.bins.0.live", false, -ENOTSUP, HM_UNSUPPORTED);
	check("experimental.hooks.install", true, -ENOTSUP, HM_UNSUPPORTED);
}

#define UNKNOWN                                                                                    \
	{                                                                                          \
		0                                                                                  \
	}
/* What a build says of profiling: compiled in, enabled at the start, with statistics per class. */
#define PROF(C, O, S)                                                                              \
	{                                                                                          \
		[CTL_CONFIG_PROF] = (C), [CTL_OPT_PROF] = (O), [CTL_OPT_PROF_STATS] = (S)          \
	}
#define STATS(S)                                                                                   \
	{                                                                                          \
		[CTL_CONFIG_STATS] = (S)                                                           \
	}
#define NO  ANSWER_NO
#define YES ANSWER_YES

static const struct {
	const char *name, *version;
	bool write;
	int rc;
	enum ctl_answer fact[CTL_FACTS];
	const char *code, *word, *hint;
} errors[] = {
	/* ENOENT: the version, then the build, then the start, then an index */
	{ "opt.hpa", "5.2.1", false, ENOENT, UNKNOWN, "mallctl-version", "came with 5.3.0", "" },
	{ "stats.pinned", "5.3.1", false, ENOENT, UNKNOWN, "mallctl-version", "after 5.3.1", "" },
	{ "opt.lg_tcache_max", "5.3.0", false, ENOENT, UNKNOWN, "mallctl-version",
	  "removed in 5.3.0", "" },
	{ "opt.lg_tcache_max", "5.2.1", false, ENOENT, UNKNOWN, "mallctl-not-built", "5.2.1", "" },
	{ "opt.hpa", "5.3.0", false, ENOENT, UNKNOWN, "mallctl-not-built", "5.3.0", "" },
	{ "opt.hpa", "", false, ENOENT, UNKNOWN, "mallctl-not-built", "does not know", "" },
	{ "stats.allocated", "5.3.0", false, ENOENT, STATS(NO), "mallctl-not-built",
	  "config.stats is false", "--enable-stats" },
	{ "stats.allocated", "5.3.0", false, ENOENT, UNKNOWN, "mallctl-not-built",
	  "either this jemalloc was built without statistics", "config.stats" },
	{ "stats.allocated", "5.3.0", false, ENOENT, STATS(YES), "mallctl-not-built",
	  "does not know", "" },
	{ "prof.active", "5.2.1", true, ENOENT, PROF(NO, 0, 0), "mallctl-not-built",
	  "built without heap profiling (config.prof is false)", "--enable-prof" },
	{ "prof.active", "5.2.1", true, ENOENT, PROF(YES, NO, 0), "mallctl-not-enabled",
	  "not enabled when the program started", "_RJEM_MALLOC_CONF=prof:true" },
	{ "prof.active", "5.2.1", true, ENOENT, UNKNOWN, "mallctl-not-built", "either",
	  "read config.prof and opt.prof" },
	{ "prof.dump", "5.2.1", true, ENOENT, PROF(YES, NO, 0), "mallctl-not-enabled",
	  "opt.prof is false", "prof:true" },
	{ "prof.stats.bins.<i>.live", "5.3.0", false, ENOENT, PROF(YES, YES, NO),
	  "mallctl-not-enabled", "opt.prof_stats is false", "prof_stats:true" },
	{ "opt.malloc_conf.env_var", "5.3.1", false, ENOENT, UNKNOWN, "mallctl-not-built",
	  "not set", "" },
	{ "background_thread", "5.3.0", false, ENOENT, UNKNOWN, "mallctl-not-built",
	  "without background threads", "decay" },
	{ "arenas.bin.999.size", "5.3.0", false, ENOENT, UNKNOWN, "mallctl-no-index", "index",
	  "arenas.nbins" },
	{ "stats.arenas.7.pdirty", "5.3.0", false, ENOENT, UNKNOWN, "mallctl-no-arena",
	  "not initialised", "`arenas`" },
	/* EFAULT */
	{ "arena.7.dirty_decay_ms", "5.3.0", false, EFAULT, UNKNOWN, "mallctl-no-arena",
	  "not initialised", "arenas.dirty_decay_ms" },
	{ "arenas.dirty_decay_ms", "5.3.0", true, EFAULT, UNKNOWN, "mallctl-invalid",
	  "does not accept", "" },
	{ "prof.dump", "5.2.1", true, EFAULT, UNKNOWN, "mallctl-file", "could not write", "" },
	{ "prof.log_stop", "5.2.1", false, EFAULT, UNKNOWN, "mallctl-file", "log", "" },
	{ "thread.arena", "5.3.0", true, EFAULT, UNKNOWN, "mallctl-no-arena", "no arena", "" },
	{ "thread.tcache.flush", "5.3.0", false, EFAULT, UNKNOWN, "mallctl-thread", "cache",
	  "heapmedic's" },
	{ "thread.idle", "5.3.0", false, EFAULT, UNKNOWN, "mallctl-thread", "calling thread", "" },
	{ "background_thread", "5.3.0", true, EFAULT, UNKNOWN, "mallctl-refused", "start or end",
	  "limits" },
	{ "epoch", "5.3.0", false, EFAULT, UNKNOWN, "mallctl-refused", "could not do it", "" },
	/* EPERM */
	{ "opt.narenas", "5.3.0", true, EPERM, UNKNOWN, "mallctl-read-only", "can only be read",
	  "_RJEM_MALLOC_CONF" },
	{ "config.prof", "5.3.0", true, EPERM, UNKNOWN, "mallctl-read-only", "can only be read",
	  "built" },
	{ "version", "5.3.0", true, EPERM, UNKNOWN, "mallctl-read-only", "can only be read", "" },
	{ "prof.dump", "5.3.0", false, EPERM, UNKNOWN, "mallctl-read-only", "can only be written",
	  "" },
	{ "thread.arena", "5.3.0", true, EPERM, UNKNOWN, "mallctl-refused", "percpu_arena", "" },
	{ "prof.gdump", "5.3.0", true, EPERM, UNKNOWN, "mallctl-read-only", "in other versions",
	  "" },
	/* EINVAL, EAGAIN, ENOMEM */
	{ "arena.0.dss", "5.3.0", true, EINVAL, UNKNOWN, "mallctl-invalid", "precedence",
	  "secondary" },
	{ "thread.prof.name", "5.3.0", true, EINVAL, UNKNOWN, "mallctl-invalid", "printable", "" },
	{ "prof.reset", "5.3.0", true, EINVAL, UNKNOWN, "mallctl-invalid", "out of range", "" },
	{ "arenas.page", "5.3.0", false, EINVAL, UNKNOWN, "mallctl-invalid", "another type", "" },
	{ "arenas.create", "5.3.0", true, EAGAIN, UNKNOWN, "mallctl-again", "another arena", "" },
	{ "thread.prof.name", "5.3.0", true, EAGAIN, UNKNOWN, "mallctl-again", "calling thread",
	  "" },
	{ "stats.allocated", "5.3.0", false, EAGAIN, UNKNOWN, "mallctl-again", "initialised yet",
	  "" },
	{ "epoch", "5.3.0", true, ENOMEM, UNKNOWN, "mallctl-memory", "no memory", "" },
	/* none of jemalloc's */
	{ "arenas.page", "5.3.0", false, 77, UNKNOWN, "mallctl-failed", "returned 77", "" },
	{ "arenas.page", "5.3.0", false, -5, UNKNOWN, "mallctl-failed", "returned", "" },
};

Test(mallctl, errors_say_why)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct ctl_build b = { .conf = "_RJEM_MALLOC_CONF" };
		const struct ctl_name *row = ctl_find(errors[i].name);
		struct diag d = { 0 };
		int rc;

		cr_assert(row, "%s", errors[i].name);
		snprintf(b.version, sizeof(b.version), "%s", errors[i].version);
		memcpy(b.fact, errors[i].fact, sizeof(b.fact));
		rc = ctl_error(row, errors[i].name, &b, errors[i].write, errors[i].rc, &d);
		cr_expect(rc < 0);
		if (errors[i].rc > 0)
			cr_expect_eq(rc, -errors[i].rc);
		cr_expect_eq(d.exit, HM_CALL_FAILED);
		cr_expect_str_eq(d.code, errors[i].code, "%s: %s", errors[i].name, d.code);
		cr_expect(strstr(d.text, errors[i].word), "'%s' lacks '%s'", d.text,
			  errors[i].word);
		cr_expect(strstr(d.text, errors[i].name));
		cr_expect(*d.hint);
		cr_expect(strstr(d.hint, errors[i].hint), "'%s' lacks '%s'", d.hint,
			  errors[i].hint);
		cr_expect_not(strchr(d.hint, '%'), "%s", d.hint);
	}
}

/* Without a prefix, or where it is not known, the variable is jemalloc's own. */
Test(mallctl, options_are_read_from)
{
	struct ctl_build b = { .fact = PROF(YES, NO, 0) };
	struct diag d = { 0 };

	cr_expect(ctl_error(ctl_find("prof.active"), "prof.active", &b, true, ENOENT, &d) < 0);
	cr_expect(strstr(d.hint, "with MALLOC_CONF=prof:true"), "%s", d.hint);
}

Test(mallctl, another_size_is_told)
{
	const struct ctl_build b = { .version = "5.3.0" };
	struct diag d = { 0 };

	cr_expect_eq(ctl_error_size(ctl_find("arenas.page"), "arenas.page", &b, 4, &d), -EINVAL);
	cr_expect_str_eq(d.code, "mallctl-size");
	cr_expect(strstr(d.text, "4 bytes") && strstr(d.text, "size_t has 8"), "%s", d.text);
	cr_expect(strstr(d.text, "5.3.0"));
}

/* No combination of name, code, version and build leaves the sentence empty. */
Test(mallctl, every_error_has_a_sentence)
{
	static const int codes[] = { ENOENT, EPERM, EINVAL, EFAULT, EAGAIN, ENOMEM, EIO };
	static const char *const versions[] = { "", "4.5.0", "5.2.1", "5.3.0", "5.3.1", "rubbish" };
	static const enum ctl_answer answers[] = { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };
	const size_t n_versions = sizeof(versions) / sizeof(versions[0]);
	size_t n;
	const struct ctl_name *t = ctl_table(&n);

	for (size_t i = 0; i < n * n_versions; i++) {
		const struct ctl_name *row = &t[i / n_versions];

		for (size_t c = 0; c < 2 * 3 * sizeof(codes) / sizeof(codes[0]); c++) {
			struct ctl_build b = { 0 };
			struct diag d = { 0 };
			int code = codes[c / 6];

			for (size_t f = 0; f < CTL_FACTS; f++)
				b.fact[f] = answers[c / 2 % 3];
			snprintf(b.version, sizeof(b.version), "%s", versions[i % n_versions]);
			cr_assert_eq(ctl_error(row, row->name, &b, c % 2, code, &d), -code);
			cr_assert(strlen(d.text) > strlen(row->name) + 4 && *d.hint && *d.code,
				  "%s, %d", row->name, code);
			cr_assert_not(strchr(d.hint, '%'), "%s", d.hint);
		}
	}
}

Test(mallctl, versions)
{
	cr_expect_eq(ctl_version("5.3.0"), 0x050300);
	cr_expect_eq(ctl_version("5.3.0-113"), 0x050300);
	cr_expect_eq(ctl_version("5.2.1-0-gea6b3e973b477b8061e0076bb257dbd7f3faa756"), 0x050201);
	cr_expect_eq(ctl_version("5.3.1 (dev)"), 0x050301);
	cr_expect_eq(ctl_version(""), 0);
	cr_expect_eq(ctl_version("5"), 0);
	cr_expect_eq(ctl_version("5.3"), 0);
	cr_expect_eq(ctl_version("5..1"), 0);
	cr_expect_eq(ctl_version("-5.3.0"), 0);
	cr_expect_eq(ctl_version("999.3.0"), 0);
}
