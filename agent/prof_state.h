// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROF_STATE_H
#define HM_PROF_STATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/* What jemalloc says of its heap profiling: one name of mallctl each. */
enum prof_name {
	PROF_COMPILED,		 /* config.prof */
	PROF_LIBGCC,		 /* config.prof_libgcc: who unwinds */
	PROF_LIBUNWIND,		 /* config.prof_libunwind */
	PROF_FRAME_POINTER,	 /* config.prof_frameptr */
	PROF_ENABLED,		 /* opt.prof */
	PROF_ACTIVE,		 /* prof.active */
	PROF_ACTIVE_AT_FIRST,	 /* opt.prof_active */
	PROF_LG_SAMPLE,		 /* prof.lg_sample: in force */
	PROF_LG_SAMPLE_AT_FIRST, /* opt.lg_prof_sample */
	PROF_NEW_THREADS,	 /* prof.thread_active_init */
	PROF_ACCUM,		 /* opt.prof_accum */
	PROF_GDUMP,		 /* prof.gdump */
	PROF_INTERVAL,		 /* prof.interval */
	PROF_FINAL,		 /* opt.prof_final */
	PROF_NAMES
};

struct prof_state {
	bool known[PROF_NAMES]; /* not so where this version does not have the name */
	uint64_t value[PROF_NAMES];
};

/* mallctl's name, and how many bytes its value has: 1 (bool) or 8. */
const char *prof_name_text(enum prof_name n, size_t *size);
/* False also where it is not known. */
bool prof_is(const struct prof_state *s, enum prof_name n);
/* Bytes between two samples on average, 0 where no rate is in force. */
uint64_t prof_sample_bytes(const struct prof_state *s);
/* "libgcc", "libunwind", "frame pointers", "gcc's built-in"; NULL where it is not compiled in. */
const char *prof_unwinder(const struct prof_state *s);

/*
 * Pure: the line that has to be in the environment at the next start: "NAME=VALUE", after what the
 * variable has now (had, NULL: nothing): of two options of one name jemalloc takes the last
 * (malloc_conf_init). had is left out where it has other characters than options have. Returns buf.
 */
const char *prof_conf_line(const char *name, const char *had, char *buf, size_t size);
/*
 * 0 where samples can be taken, else exit 1 with the reason: not compiled in, or not enabled at the
 * start; line is prof_conf_line's.
 */
HM_MUST_CHECK int prof_check(const struct prof_state *s, int pid, const char *line, struct diag *d);
#endif
