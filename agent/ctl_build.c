// SPDX-License-Identifier: GPL-3.0-or-later
#include "ctl_build.h"

#include <stdio.h>
#include <string.h>

/* What it means that a fact is not so. A %s in the hint is the variable with the options. */
static const struct fact_row {
	const char *name, *text, *hint;
} facts[CTL_FACTS] = {
	[CTL_CONFIG_PROF] = { "config.prof", "this jemalloc was built without heap profiling",
			      "use a build with --enable-prof" },
	[CTL_OPT_PROF] = { "opt.prof",
			   "heap profiling was not enabled when the program started, and cannot be "
			   "later",
			   "start it with %s=prof:true,prof_active:false: then `mallctl "
			   "prof.active "
			   "true` switches it on" },
	[CTL_OPT_PROF_STATS] = { "opt.prof_stats",
				 "statistics per class were not enabled when the program started",
				 "start it with %s=prof:true,prof_stats:true" },
	[CTL_CONFIG_STATS] = { "config.stats", "this jemalloc was built without statistics",
			       "use a build with --enable-stats, which is the default" },
	[CTL_CONFIG_FILL] = { "config.fill", "this jemalloc was built without memory filling",
			      "use a build with --enable-fill" },
	[CTL_CONFIG_UTRACE] = { "config.utrace", "this jemalloc was built without utrace",
				"use a build with --enable-utrace" },
	[CTL_CONFIG_XMALLOC] = { "config.xmalloc", "this jemalloc was built without xmalloc",
				 "use a build with --enable-xmalloc" },
	[CTL_CONFIG_SAFETY] = { "config.opt_safety_checks",
				"this jemalloc was built without safety checks",
				"use a build with --enable-opt-safety-checks" },
	[CTL_OPT_RETAIN] = { "opt.retain",
			     "this program does not keep address space (retain is false)",
			     "start it with %s=retain:true" },
};

/* Conditions of the table, each with the facts that make it, in the order of what comes first. */
static const struct condition_row {
	const char *condition;
	unsigned n;
	enum ctl_fact fact[3];
	const char *text, *hint; /* where no fact tells */
} conditions[] = {
	{ "prof & opt.prof & opt.prof_stats",
	  3,
	  { CTL_CONFIG_PROF, CTL_OPT_PROF, CTL_OPT_PROF_STATS },
	  NULL,
	  NULL },
	{ "prof & opt.prof", 2, { CTL_CONFIG_PROF, CTL_OPT_PROF }, NULL, NULL },
	{ "prof", 2, { CTL_CONFIG_PROF, CTL_OPT_PROF }, NULL, NULL },
	{ "stats", 1, { CTL_CONFIG_STATS }, NULL, NULL },
	{ "fill", 1, { CTL_CONFIG_FILL }, NULL, NULL },
	{ "utrace", 1, { CTL_CONFIG_UTRACE }, NULL, NULL },
	{ "xmalloc", 1, { CTL_CONFIG_XMALLOC }, NULL, NULL },
	{ "opt-safety-checks", 1, { CTL_CONFIG_SAFETY }, NULL, NULL },
	{ "opt.retain", 1, { CTL_OPT_RETAIN }, NULL, NULL },
	{ "background threads built",
	  0,
	  { 0 },
	  "this jemalloc was built without background threads",
	  "lower the decay times instead (`decay`): they work without them" },
	{ "cxx",
	  0,
	  { 0 },
	  "this jemalloc was built without C++ support",
	  "use a build with --enable-cxx" },
	{ "uaf-detection",
	  0,
	  { 0 },
	  "this jemalloc was built without use-after-free detection",
	  "use a build with --enable-uaf-detection" },
	{ "if set",
	  0,
	  { 0 },
	  "that source of options is not set in this program",
	  "config.malloc_conf has the options that are compiled in" },
};

const char *ctl_fact_name(enum ctl_fact f)
{
	return (unsigned)f < CTL_FACTS ? facts[f].name : "";
}

const char *ctl_condition_part(const char *condition, const char *key)
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

static const struct condition_row *find(const char *condition)
{
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		const char *rest = ctl_condition_part(condition, conditions[i].condition);

		if (rest && (!*rest || *rest == ';'))
			return &conditions[i];
	}
	return NULL;
}

bool ctl_build_matters(const char *condition)
{
	const struct condition_row *c = find(condition);

	return c && c->n;
}

void ctl_build_hint(const struct ctl_build *b, const char *hint, char *buf, size_t size)
{
	const char *at = strstr(hint, "%s");
	const char *conf = *b->conf ? b->conf : "MALLOC_CONF";

	if (at)
		snprintf(buf, size, "%.*s%s%s", (int)(at - hint), hint, conf, at + 2);
	else
		snprintf(buf, size, "%s", hint);
}

/* A fact that is not so: built without it, or not enabled at the start. */
static bool reason_of(const struct ctl_build *b, enum ctl_fact fact, struct ctl_reason *out)
{
	const struct fact_row *f = &facts[fact];

	out->code = strncmp(f->name, "opt.", 4) ? "mallctl-not-built" : "mallctl-not-enabled";
	snprintf(out->text, sizeof(out->text), "%s (%s is false)", f->text, f->name);
	ctl_build_hint(b, f->hint, out->hint, sizeof(out->hint));
	return true;
}

/* What it depends on is not known: that is told, and how to find out. */
static bool reason_unknown(enum ctl_fact fact, const enum ctl_fact *next, struct ctl_reason *out)
{
	const struct fact_row *f = &facts[fact], *other = next ? &facts[*next] : NULL;

	snprintf(out->text, sizeof(out->text), "either %s, or %s", f->text,
		 other ? other->text : "it has no such name");
	snprintf(out->hint, sizeof(out->hint), "read %s%s%s", f->name, other ? " and " : "",
		 other ? other->name : "");
	return true;
}

bool ctl_build_reason(const struct ctl_build *b, const char *condition, struct ctl_reason *out)
{
	const struct condition_row *c = find(condition);

	*out = (struct ctl_reason){ .code = "mallctl-not-built" };
	if (!c)
		return false;
	if (!c->n) {
		snprintf(out->text, sizeof(out->text), "%s", c->text);
		snprintf(out->hint, sizeof(out->hint), "%s", c->hint);
		return true;
	}
	for (unsigned i = 0; i < c->n; i++)
		if (b->fact[c->fact[i]] == ANSWER_NO)
			return reason_of(b, c->fact[i], out);
	for (unsigned i = 0; i < c->n; i++)
		if (b->fact[c->fact[i]] != ANSWER_YES)
			return reason_unknown(c->fact[i], i + 1 < c->n ? &c->fact[i + 1] : NULL,
					      out);
	return false;
}
