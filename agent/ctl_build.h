// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CTL_BUILD_H
#define HM_CTL_BUILD_H
#include <stdbool.h>
#include <stddef.h>

/*
 * What a jemalloc was built with and started with, as far as it has said so: a name that is
 * missing there is missing for one of these reasons. Pure.
 */
enum ctl_fact {
	CTL_CONFIG_PROF,
	CTL_OPT_PROF,
	CTL_OPT_PROF_STATS,
	CTL_CONFIG_STATS,
	CTL_CONFIG_FILL,
	CTL_CONFIG_UTRACE,
	CTL_CONFIG_XMALLOC,
	CTL_CONFIG_SAFETY,
	CTL_OPT_RETAIN,
	CTL_FACTS
};
enum ctl_answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };

struct ctl_build {
	char version[32];      /* "" if it is not known */
	char conf[40];	       /* the variable that it reads its options from; "": MALLOC_CONF */
	unsigned long narenas; /* arenas.narenas, 0: not known */
	enum ctl_answer fact[CTL_FACTS];
};

/* "config.prof": all of them are bools that every version can be asked for, or are missing there.
 */
const char *ctl_fact_name(enum ctl_fact f);

/* Why a name is missing (text) and what would help (hint), or only what it depends on. */
struct ctl_reason {
	const char *code; /* "mallctl-not-built", or "mallctl-not-enabled" at the start */
	char text[240], hint[256];
};
/* A hint with the variable that the program reads its options from in the place of its %s. */
void ctl_build_hint(const struct ctl_build *b, const char *hint, char *buf, size_t size);
/*
 * The reason that follows from a row's condition: the first of its facts that is not so, else the
 * first that is not known. False where the condition names nothing of the kind, or all of it holds.
 */
bool ctl_build_reason(const struct ctl_build *b, const char *condition, struct ctl_reason *out);
/* Does a condition depend on facts that can be asked for? */
bool ctl_build_matters(const char *condition);
/* The part of a condition ("a; b; c") that starts with key: what follows key, or NULL. */
const char *ctl_condition_part(const char *condition, const char *key);
#endif
