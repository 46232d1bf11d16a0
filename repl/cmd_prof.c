// SPDX-License-Identifier: GPL-3.0-or-later
#include "prof.h"

#include <errno.h>
#include <string.h>

#include "../agent/allocator_choice.h"
#include "context.h"
#include "nearest.h"

#define OPTION(i) (1u << (i))
#define OFFLINE	  (CMD_PASSIVE | CMD_NO_PROCESS)
#define CHANGE	  (CMD_CALLS | CMD_WRITES)

int prof_jemalloc(struct context *c, struct reply *r, const struct allocator **out, struct diag *d)
{
	const struct allocators *all = &c->process->allocs;
	char label[ALLOCATOR_LABEL];
	size_t others = 0;
	int err = allocator_choose(c->process, "jemalloc", out, &others, d);

	if (err == -ENOENT)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-jemalloc",
				 "`check` lists the allocators; only jemalloc has heap profiles",
				 "%s does not allocate with jemalloc", c->comm);
	if (!err && others && r)
		reply_warn(c, r, "several-allocators",
			   "this is %s, which owns malloc; it is one of %zu jemallocs, "
			   "--allocator chooses another one",
			   allocator_label(all, *out, label, sizeof(label)), others + 1);
	return err;
}

/* What the first word can be; min and max count the words behind it. */
static const struct prof_sub {
	const char *name, *usage;
	int min, max;
	unsigned options; /* which of the row's it takes */
	unsigned effect;
	check_fn *check; /* NULL: nothing to check */
	command_fn *run;
} subs[] = {
	{ "status", "", 0, 0, 0, CMD_CALLS, NULL, prof_status },
	{ "on", "", 0, 0, OPTION(PROF_FOR), CHANGE | CMD_STREAMS, check_prof_on, prof_on },
	{ "off", "", 0, 0, 0, CHANGE, NULL, prof_off },
	{ "reset", "[LG]", 0, 1, 0, CHANGE, check_prof_reset, prof_reset },
	{ "dump", "FILE", 1, 1, OPTION(PROF_RAW) | OPTION(PROF_MANGLED) | OPTION(PROF_FORCE),
	  CMD_CALLS, NULL, prof_dump },
	{ "top", "[N]", 0, 1, OPTION(PROF_FILE) | OPTION(PROF_CUM) | OPTION(PROF_MANGLED),
	  CMD_CALLS, check_prof_top, prof_top },
	{ "export", "FILE", 1, 1, OPTION(PROF_FILE) | OPTION(PROF_MANGLED) | OPTION(PROF_FORCE),
	  CMD_CALLS, check_prof_export, prof_export },
	{ "diff", "A B", 2, 2, OPTION(PROF_MANGLED), OFFLINE, NULL, prof_diff },
};
#define SUBS (sizeof(subs) / sizeof(subs[0]))

const char *prof_name(size_t i)
{
	return i < SUBS ? subs[i].name : NULL;
}

static const struct prof_sub *sub_find(const char *name)
{
	for (size_t i = 0; i < SUBS; i++)
		if (strcmp(subs[i].name, name) == 0)
			return &subs[i];
	return NULL;
}

static const char *next_name(size_t i, const void *arg)
{
	(void)arg;
	return prof_name(i);
}

unsigned effect_prof(const struct args *a)
{
	const struct prof_sub *sub = a->argc ? sub_find(a->argv[0]) : NULL;

	if (!sub)
		return CHANGE;
	return a->opt[PROF_FILE] ? OFFLINE : sub->effect;
}

static int unknown(const char *name, struct diag *d)
{
	const char *near = nearest(name, next_name, NULL);
	char hint[100];

	if (near)
		snprintf(hint, sizeof(hint), "did you mean `prof %s`? see `help prof`", near);
	else
		snprintf(hint, sizeof(hint), "see `help prof`");
	return diag_fail(d, -EINVAL, HM_USAGE, "usage", hint, "prof does not know '%.60s'", name);
}

static int check_options(const struct prof_sub *sub, const struct args *a, struct diag *d)
{
	const struct command *row = command_find("prof");

	for (int i = 0; i < COMMAND_OPTIONS; i++)
		if (a->opt[i] && !(sub->options & OPTION(i)))
			return diag_fail(d, -EINVAL, HM_USAGE, "bad-option", "see `help prof`",
					 "prof %s has no option --%s", sub->name,
					 row->options[i].name);
	return 0;
}

int check_prof(const struct args *a, struct diag *d)
{
	const struct prof_sub *sub = sub_find(a->argv[0]);
	int words = a->argc - 1, err;
	char hint[100];

	if (!sub)
		return unknown(a->argv[0], d);
	err = check_options(sub, a, d);
	if (err)
		return err;
	snprintf(hint, sizeof(hint), "usage: prof %s%s%s", sub->name, *sub->usage ? " " : "",
		 sub->usage);
	if (words < sub->min || words > sub->max)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", hint,
				 "prof %s: too %s arguments (%d)", sub->name,
				 words < sub->min ? "few" : "many", words);
	return sub->check ? sub->check(a, d) : 0;
}

int cmd_prof(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	return sub_find(a->argv[0])->run(c, a, r, d);
}
