// SPDX-License-Identifier: GPL-3.0-or-later
#include "advice_others.h"

#include <inttypes.h>
#include <string.h>

#include "size.h"

/* ---- tcmalloc */

static void tcmalloc_now(const struct advice_case *c, struct advices *out)
{
	uint64_t bytes = facts_get(c->facts, FACT_TCMALLOC_PAGEHEAP_FREE);

	if (bytes >= advice_limits.note)
		advice_expect(
			advice_add(out, ADVICE_TRIM,
				   "`trim`: a release returns tcmalloc's free spans (of those "
				   "that were ever used: at most so much)"),
			bytes);
}

/* Of gperftools; Google's has no such variables. The rate is 1 by default, the caches' limit 32
 * MiB (gperftools' tcmalloc.html). */
static void tcmalloc_restart(const struct advice_case *c, struct advices *out)
{
	uint64_t spans = facts_get(c->facts, FACT_TCMALLOC_PAGEHEAP_FREE);
	uint64_t cached = facts_get(c->facts, FACT_TCMALLOC_THREAD_CACHES);
	uint64_t limit = facts_get(c->facts, FACT_TCMALLOC_THREAD_CACHES_MAX);
	char has[SIZE_TEXT], most[SIZE_TEXT];

	if (spans >= advice_limits.restart)
		advice_expect(
			advice_add(out, ADVICE_RESTART,
				   "TCMALLOC_RELEASE_RATE=10 (1 is the default): free spans go "
				   "back ten times as fast while the program frees; or "
				   "TCMALLOC_AGGRESSIVE_DECOMMIT=true: at once, which costs page "
				   "faults"),
			spans);
	if (cached >= advice_limits.restart)
		advice_expect(advice_add(out, ADVICE_RESTART,
					 "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=%" PRIu64
					 ": the threads' caches hold %s of at most %s; with less "
					 "they wait for each other more often",
					 cached / 4, size_format(cached, has),
					 size_format(limit, most)),
			      cached - cached / 4);
}

/* ---- mimalloc */

/* What makes it return unused pages sooner, by version (mimalloc's readme and options.c). */
static const struct {
	const char *from; /* versions from here on; the first that fits counts */
	const char *setting;
} mimalloc_settings[] = {
	{ "2.1.0", "MIMALLOC_PURGE_DELAY=0 MIMALLOC_ABANDONED_PAGE_PURGE=1" },
	{ "2.0.0", "MIMALLOC_DECOMMIT_DELAY=0 MIMALLOC_ABANDONED_PAGE_DECOMMIT=1" },
	{ "1.8.0", "MIMALLOC_PURGE_DELAY=0 MIMALLOC_ABANDONED_PAGE_PURGE=1" },
	{ "0", "MIMALLOC_PAGE_RESET=1 MIMALLOC_ABANDONED_PAGE_RESET=1 MIMALLOC_RESET_DELAY=0" },
};

/* NULL where the version is not known. */
static const char *mimalloc_setting(const char *version)
{
	for (size_t i = 0; i < sizeof(mimalloc_settings) / sizeof(mimalloc_settings[0]); i++)
		if (strverscmp(version, mimalloc_settings[i].from) >= 0)
			return mimalloc_settings[i].setting;
	return NULL;
}

static void mimalloc_now(const struct advice_case *c, struct advices *out)
{
	if (c->mimalloc_resident >= advice_limits.restart && !c->no_call)
		advice_add(
			out, ADVICE_TRIM,
			"`trim`: mi_collect(true) returns what ended threads have left; of a "
			"thread that lives only `--via direct --thread TID trim` returns what is "
			"free, and holds it meanwhile");
}

static void mimalloc_restart(const struct advice_case *c, struct advices *out)
{
	const char *setting = mimalloc_setting(c->mimalloc);

	if (c->mimalloc_resident < advice_limits.restart)
		return;
	if (setting)
		advice_add(out, ADVICE_RESTART,
			   "%s: unused pages are returned as soon as they are free, which costs "
			   "page faults",
			   setting);
	advice_add(out, ADVICE_NOTE,
		   "mimalloc does not tell what is in use: `watch` shows what grows");
}

/* ---- all */

void advice_others_now(const struct advice_case *c, struct advices *out)
{
	if (c->tcmalloc)
		tcmalloc_now(c, out);
	if (c->mimalloc)
		mimalloc_now(c, out);
}

void advice_others_restart(const struct advice_case *c, struct advices *out)
{
	if (c->tcmalloc && !c->google)
		tcmalloc_restart(c, out);
	if (c->mimalloc)
		mimalloc_restart(c, out);
	if (c->musl_resident >= advice_limits.restart)
		advice_add(
			out, ADVICE_RESTART,
			"another malloc, linked in or preloaded (jemalloc, mimalloc), if much of "
			"that is free: musl's gives a group of blocks back once all of them are "
			"free, and has neither a call nor a setting for it");
}
