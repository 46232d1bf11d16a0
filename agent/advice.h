// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ADVICE_H
#define HM_ADVICE_H
#include "facts.h"
#include "glibc_arenas.h"
#include "verdict.h"

/* What a process was started with, as far as it matters for its memory. */
struct advice_settings {
	bool known; /* else nothing below is */
	bool malloc_conf;
	bool gogc, gomemlimit;	/* set, and a value that Go takes */
	int gogc_percent;	/* -1: off */
	uint64_t memlimit;	/* UINT64_MAX: off */
	bool tunables;		/* GLIBC_TUNABLES is set, whatever stands there */
	uint64_t arena_max;	/* as it allows; 0: it says nothing */
	bool arena_max_tunable; /* by GLIBC_TUNABLES, else by MALLOC_ARENA_MAX */
};

/* All that advice follows from. */
struct advice_case {
	enum verdict verdict;
	const struct makeup *makeup;
	const struct facts *facts;
	const struct glibc_arenas *glibc; /* NULL: its heap is not known */
	uint64_t main_resident;		  /* of the main arena */
	uint64_t heap_resident;		  /* of all arenas */
	const char *jemalloc;		  /* its symbols' prefix, NULL: not in use */
	bool tcmalloc;			  /* in use */
	bool google;			  /* and Google's */
	const char *mimalloc;		  /* its version or "", NULL: not in use */
	uint64_t mimalloc_resident, musl_resident;
	const char *other; /* another allocator that owns malloc, or NULL */
	bool go;
	const char *no_call; /* why no call can be made in it, or NULL */
	struct advice_settings set;
};

/* What a line is about; a contract with scripts. */
enum advice_action {
	ADVICE_TRIM,	/* now: `trim` */
	ADVICE_PURGE,	/* now: `trim`, which purges jemalloc */
	ADVICE_RESTART, /* with other settings */
	ADVICE_LOOK_AT, /* it is not the allocator, or not what is free in it */
	ADVICE_NOTE,	/* where a remedy does not help */
};
const char *advice_action_name(enum advice_action a); /* "trim" ... "look-at" "note" */

struct advice {
	enum advice_action action;
	char text[400];
	bool known;	   /* what it would bring is known */
	uint64_t expected; /* bytes */
};

#define ADVICE_MAX 16
struct advices {
	struct advice v[ADVICE_MAX];
	size_t n;
};

/* From how many bytes on a thing is worth a line, and how many arenas advice would leave. */
struct advice_limits {
	uint64_t note;	    /* a line */
	uint64_t restart;   /* a restart with another setting */
	unsigned arenas;    /* the largest cap that is advised: more are no cap to speak of */
	double arena_share; /* a wider cap has to save this much of what the tightest one does */
	uint64_t threshold; /* DEFAULT_MMAP_THRESHOLD, DEFAULT_TRIM_THRESHOLD */
};
extern const struct advice_limits advice_limits;

/* Adds a line; never NULL: what does not fit any more replaces the last one, which is the least
 * important. */
struct advice *advice_add(struct advices *out, enum advice_action action, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What it would bring is known. */
void advice_expect(struct advice *a, uint64_t bytes);
/* Pure. What is to be done now comes first, then what a restart would bring, then the rest. */
void advice_make(const struct advice_case *c, struct advices *out);
/* Pure: resident free bytes of all arenas but the n largest, which stand first. */
uint64_t advice_beyond(const struct glibc_plan *p, unsigned n);
/*
 * Pure: how many arenas to advise, a power of two. Each arena less is memory saved and a lock that
 * more threads share: so it is the most arenas that still save nearly as much as the fewest that
 * make sense. That is one where only one thread can allocate at a time (one thread, one CPU), else
 * two: with one, every thread waits for every other.
 */
unsigned advice_arena_cap(const struct glibc_arenas *a);
/*
 * Pure: the variable that a jemalloc with that prefix reads its options from: JEMALLOC_CPREFIX,
 * the prefix in capitals, and "MALLOC_CONF" (jemalloc's configure.ac).
 */
const char *advice_conf_name(const char *prefix, char *buf, size_t size);
#endif
