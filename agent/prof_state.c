// SPDX-License-Identifier: GPL-3.0-or-later
#include "prof_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OPTION_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:,.|/+-"

static const struct {
	const char *name;
	size_t size;
} names[PROF_NAMES] = {
	[PROF_COMPILED] = { "config.prof", 1 },
	[PROF_LIBGCC] = { "config.prof_libgcc", 1 },
	[PROF_LIBUNWIND] = { "config.prof_libunwind", 1 },
	[PROF_FRAME_POINTER] = { "config.prof_frameptr", 1 },
	[PROF_ENABLED] = { "opt.prof", 1 },
	[PROF_ACTIVE] = { "prof.active", 1 },
	[PROF_ACTIVE_AT_FIRST] = { "opt.prof_active", 1 },
	[PROF_LG_SAMPLE] = { "prof.lg_sample", 8 },
	[PROF_LG_SAMPLE_AT_FIRST] = { "opt.lg_prof_sample", 8 },
	[PROF_NEW_THREADS] = { "prof.thread_active_init", 1 },
	[PROF_ACCUM] = { "opt.prof_accum", 1 },
	[PROF_GDUMP] = { "prof.gdump", 1 },
	[PROF_INTERVAL] = { "prof.interval", 8 },
	[PROF_FINAL] = { "opt.prof_final", 1 },
};

const char *prof_name_text(enum prof_name n, size_t *size)
{
	*size = names[n].size;
	return names[n].name;
}

bool prof_is(const struct prof_state *s, enum prof_name n)
{
	return s->known[n] && s->value[n];
}

uint64_t prof_sample_bytes(const struct prof_state *s)
{
	/* jemalloc keeps a rate of its own also where nothing is sampled */
	if (!prof_is(s, PROF_ENABLED) || !s->known[PROF_LG_SAMPLE] || s->value[PROF_LG_SAMPLE] > 63)
		return 0;
	return (uint64_t)1 << s->value[PROF_LG_SAMPLE];
}

const char *prof_unwinder(const struct prof_state *s)
{
	if (!prof_is(s, PROF_COMPILED))
		return NULL;
	if (prof_is(s, PROF_LIBUNWIND))
		return "libunwind";
	if (prof_is(s, PROF_LIBGCC))
		return "libgcc";
	return prof_is(s, PROF_FRAME_POINTER) ? "frame pointers" : "gcc's built-in";
}

const char *prof_conf_line(const char *name, const char *had, char *buf, size_t size)
{
	bool keep = had && *had && had[strspn(had, OPTION_CHARS)] == '\0' &&
		    strlen(had) + strlen(name) + 40 < size;

	snprintf(buf, size, "%s=%s%sprof:true,prof_active:false", name, keep ? had : "",
		 keep ? "," : "");
	return buf;
}

int prof_check(const struct prof_state *s, int pid, const char *line, struct diag *d)
{
	char hint[400];

	if (!prof_is(s, PROF_COMPILED))
		return diag_fail(d, -ENOENT, HM_CALL_FAILED, "prof-not-built",
				 "it needs a jemalloc built with --enable-prof: Debian's "
				 "libjemalloc2 is, tikv-jemallocator with its feature `profiling`",
				 "the jemalloc of process %d was built without heap profiling "
				 "(config.prof is false)",
				 pid);
	if (prof_is(s, PROF_ENABLED))
		return 0;
	snprintf(hint, sizeof(hint),
		 "start it with %s in its environment; `prof on` can switch it on then", line);
	return diag_fail(d, -ENOENT, HM_CALL_FAILED, "prof-not-enabled", hint,
			 "heap profiling was not enabled when process %d started (opt.prof is "
			 "false): it cannot be switched on any more",
			 pid);
}
