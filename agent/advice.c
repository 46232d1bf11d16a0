// SPDX-License-Identifier: GPL-3.0-or-later
#include "advice.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "advice_others.h"
#include "size.h"

#define MIB ((uint64_t)1 << 20)

const struct advice_limits advice_limits = {
	.note = MIB,
	.restart = 16 * MIB,
	.arenas = 8,
	.arena_share = 0.9,
	.threshold = (uint64_t)128 << 10,
};

const char *advice_action_name(enum advice_action a)
{
	static const char *const names[] = { "trim", "purge", "restart", "look-at", "note" };

	return names[a];
}

struct advice *advice_add(struct advices *out, enum advice_action action, const char *fmt, ...)
{
	struct advice *a = &out->v[out->n < ADVICE_MAX ? out->n++ : ADVICE_MAX - 1];
	va_list args;

	*a = (struct advice){ .action = action };
	va_start(args, fmt);
	vsnprintf(a->text, sizeof(a->text), fmt, args);
	va_end(args);
	return a;
}

void advice_expect(struct advice *a, uint64_t bytes)
{
	a->known = true;
	a->expected = bytes;
}

uint64_t advice_beyond(const struct glibc_plan *p, unsigned n)
{
	uint64_t sum = 0;

	for (size_t i = n; i < p->arenas; i++)
		sum += p->arena[i].free_resident;
	return sum;
}

const char *advice_conf_name(const char *prefix, char *buf, size_t size)
{
	snprintf(buf, size, "%sMALLOC_CONF", prefix);
	for (char *p = buf; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return buf;
}

/* ---- glibc */

static bool is_damaged(const struct glibc_plan *p)
{
	bool found = p->ring_fault.kind != FAULT_NONE;

	for (size_t i = 0; i < p->arenas; i++)
		found |= p->arena[i].fault.kind != FAULT_NONE;
	return found;
}

/* malloc_trim aborts the process where it meets damage: `trim` refuses that, as it does where no
 * call can be made. */
static void glibc_now(const struct advice_case *c, struct advices *out)
{
	const struct glibc_arena_plan *t = &c->glibc->plan.total;
	uint64_t bytes = t->pages.trimmable + t->swapped;
	char size[SIZE_TEXT];

	if (is_damaged(&c->glibc->plan))
		advice_add(out, ADVICE_RESTART,
			   "a restart: the heap is damaged, a trim would end the process (`check` "
			   "names "
			   "the place)");
	else if (bytes >= advice_limits.note && c->no_call)
		advice_add(out, ADVICE_LOOK_AT,
			   "`check`: a trim would return %s, but no call can be made: %.240s",
			   size_format(bytes, size), c->no_call);
	else if (bytes >= advice_limits.note)
		advice_expect(
			advice_add(out, ADVICE_TRIM,
				   "`trim`: malloc_trim(0) returns free pages of all arenas (%zu)",
				   c->glibc->plan.arenas),
			bytes);
}

/* Threads that may ask for memory at the same moment. */
static uint64_t allocating(const struct glibc_arenas *a)
{
	/* glibc before 2.23 does not count them: one for each arena then */
	uint64_t n = a->plan.total.attached ? a->plan.total.attached : a->plan.arenas;

	return a->allowed && a->allowed < n ? a->allowed : n;
}

unsigned advice_arena_cap(const struct glibc_arenas *a)
{
	const struct advice_limits *l = &advice_limits;
	unsigned least = allocating(a) > 1 ? 2 : 1;
	double most = (double)advice_beyond(&a->plan, least);

	for (unsigned n = l->arenas; n > least; n /= 2)
		if ((double)advice_beyond(&a->plan, n) >= l->arena_share * most)
			return n;
	return least;
}

/* "MALLOC_ARENA_MAX=2", with what else does it where the environment has tunables. */
static const char *arena_setting(const struct advice_settings *s, uint64_t n, char *buf,
				 size_t size)
{
	const char *rest = s->tunables ? "...:" : "";

	if (s->arena_max && s->arena_max_tunable)
		snprintf(buf, size, "GLIBC_TUNABLES=%sglibc.malloc.arena_max=%" PRIu64, rest, n);
	else if (s->tunables)
		snprintf(buf, size,
			 "MALLOC_ARENA_MAX=%" PRIu64
			 " (or GLIBC_TUNABLES=%sglibc.malloc.arena_max=%" PRIu64 ")",
			 n, rest, n);
	else
		snprintf(buf, size, "MALLOC_ARENA_MAX=%" PRIu64, n);
	return buf;
}

/* Who has set the cap that is in force. */
static const char *arena_max_origin(const struct advice_settings *s, uint64_t n)
{
	if (!s->known)
		return "";
	if (s->arena_max != n)
		return " by mallopt (where the program itself calls it, that wins)";
	return s->arena_max_tunable ? " by GLIBC_TUNABLES" : " by MALLOC_ARENA_MAX";
}

/* What the next wider cap would have saved: the price of less waiting. */
static const char *wider_cap(const struct glibc_plan *p, unsigned cap, char *buf, size_t size)
{
	uint64_t bytes = advice_beyond(p, cap * 2);
	char text[SIZE_TEXT];

	buf[0] = '\0';
	if (bytes >= advice_limits.restart)
		snprintf(buf, size, " (with %u: %s)", cap * 2,
			 size_format_delta(-(int64_t)bytes, text));
	return buf;
}

/* The same cap once more helps nobody: what is in force is said. */
static void arena_cap_in_force(const struct advice_case *c, uint64_t n, struct advices *out)
{
	char setting[160], hint[200] = "";

	if (c->set.known && c->set.arena_max != n)
		snprintf(hint, sizeof(hint), "; for the next one: %s",
			 arena_setting(&c->set, n, setting, sizeof(setting)));
	advice_add(out, ADVICE_NOTE,
		   "arena_max is %" PRIu64
		   " already%s, but the process has %zu arenas: those that exist "
		   "stay until a restart%s",
		   n, arena_max_origin(&c->set, n), c->glibc->plan.arenas, hint);
}

static void glibc_arena_cap(const struct advice_case *c, struct advices *out)
{
	const struct glibc_plan *p = &c->glibc->plan;
	const unsigned cap = advice_arena_cap(c->glibc);
	uint64_t bytes = advice_beyond(p, cap);
	/* mp_ has what is in force, whoever has set it */
	uint64_t now = p->par.at ? p->par.arena_max : c->set.arena_max;
	char setting[160], wider[64], before[128] = "";

	if (bytes < advice_limits.restart)
		return;
	if (now && now <= cap) {
		arena_cap_in_force(c, now, out);
		return;
	}
	if (now)
		snprintf(before, sizeof(before), " in place of %" PRIu64 ", which is set%s", now,
			 arena_max_origin(&c->set, now));
	advice_expect(
		advice_add(out, ADVICE_RESTART, "%s%s: free memory is spread over %zu arenas%s%s",
			   arena_setting(&c->set, cap, setting, sizeof(setting)), before, p->arenas,
			   allocating(c->glibc) > 1
				   ? "; threads that allocate at once may then wait for "
				     "each other"
				   : "",
			   wider_cap(p, cap, wider, sizeof(wider))),
		bytes);
}

/*
 * The thresholds follow the largest mapped block that was freed (malloc.c, free): from then on
 * blocks of that size come from the heap, and a free top of up to twice that stays.
 */
static void glibc_thresholds(const struct advice_case *c, struct advices *out)
{
	const struct glibc_par *par = &c->glibc->plan.par;
	const struct glibc_arena_plan *t = &c->glibc->plan.total;
	char map[SIZE_TEXT], trim[SIZE_TEXT];
	struct advice *a;

	if (!par->at || par->no_dyn_threshold || par->mmap_threshold <= advice_limits.threshold ||
	    t->free_resident < advice_limits.restart)
		return;
	a = advice_add(out, ADVICE_RESTART,
		       "GLIBC_TUNABLES=%sglibc.malloc.mmap_threshold=%" PRIu64
		       ":glibc.malloc.trim_threshold=%" PRIu64
		       ": the dynamic thresholds have risen to %s and %s; set, they stay",
		       c->set.tunables ? "...:" : "", advice_limits.threshold,
		       advice_limits.threshold, size_format(par->mmap_threshold, map),
		       size_format(par->trim_threshold, trim));
	/* of the main arena's end it can be told: it had been returned when it was freed */
	if (t->from_top > advice_limits.threshold)
		advice_expect(a, t->from_top - advice_limits.threshold);
}

static void glibc_notes(const struct advice_case *c, struct advices *out)
{
	const struct glibc_arena_plan *t = &c->glibc->plan.total;
	uint64_t tcache = facts_get(c->facts, FACT_GLIBC_TCACHE);
	char size[SIZE_TEXT], all[SIZE_TEXT];

	if (c->heap_resident >= advice_limits.restart && c->main_resident > c->heap_resident / 2)
		advice_add(out, ADVICE_NOTE,
			   "%s of %s of the heap are in the main arena: MALLOC_ARENA_MAX does not "
			   "help",
			   size_format(c->main_resident, size), size_format(c->heap_resident, all));
	if (t->locked >= advice_limits.note)
		advice_add(out, ADVICE_NOTE,
			   "%s are free but locked (mlock, mlockall): no call returns them",
			   size_format(t->locked, size));
	if (t->hugetlb >= advice_limits.note)
		advice_add(out, ADVICE_NOTE,
			   "%s are free but of the pool of huge pages: no call returns them",
			   size_format(t->hugetlb, size));
	if (t->huge >= advice_limits.note)
		advice_add(out, ADVICE_NOTE,
			   "%s of what a trim returns are in huge pages: where free and used "
			   "memory share "
			   "one, the kernel may fill it up again",
			   size_format(t->huge, size));
	if (tcache >= advice_limits.note)
		advice_add(out, ADVICE_NOTE,
			   "%s are in the threads' caches and count as in use: a trim does not "
			   "reach them",
			   size_format(tcache, size));
}

/* ---- jemalloc */

static void jemalloc_now(const struct advice_case *c, struct advices *out)
{
	uint64_t bytes = facts_get(c->facts, FACT_JEMALLOC_PURGEABLE);

	if (bytes >= advice_limits.note)
		advice_expect(
			advice_add(out, ADVICE_PURGE,
				   "`trim`: a purge of all arenas returns dirty and muzzy pages"),
			bytes);
}

static void jemalloc_restart(const struct advice_case *c, struct advices *out)
{
	uint64_t bytes = facts_get(c->facts, FACT_JEMALLOC_PURGEABLE);
	char name[64];

	if (bytes < advice_limits.restart)
		return;
	advice_expect(advice_add(out, ADVICE_RESTART,
				 "%s=%sbackground_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0:"
				 " unused pages "
				 "are returned within a second or so, by threads of jemalloc's own",
				 advice_conf_name(c->jemalloc, name, sizeof(name)),
				 c->set.malloc_conf ? "...," : ""),
		      bytes);
	if (c->set.malloc_conf)
		advice_add(out, ADVICE_NOTE, "%s is set already: what stands there is to be kept",
			   name);
}

static void jemalloc_notes(const struct advice_case *c, struct advices *out)
{
	if (!c->makeup->unasked || facts_known(c->facts, FACT_JEMALLOC_ALLOCATED))
		return;
	advice_add(
		out, ADVICE_LOOK_AT,
		facts_known(c->facts, FACT_JEMALLOC_PURGEABLE)
			? "this jemalloc was built without statistics: what of its memory is in "
			  "use "
			  "only a build with --enable-stats tells"
			: "jemalloc was not asked: only a call tells what of its memory is in use");
}

/* ---- others */

/* "GOGC is not set (100)" */
static const char *gogc_text(const struct advice_settings *s, char *buf, size_t size)
{
	if (!s->gogc)
		snprintf(buf, size, "GOGC is not set (100)");
	else if (s->gogc_percent < 0)
		snprintf(buf, size, "GOGC is off");
	else
		snprintf(buf, size, "GOGC is %d", s->gogc_percent);
	return buf;
}

/* "GOMEMLIMIT is 512.0 MiB" */
static const char *gomemlimit_text(const struct advice_settings *s, char *buf, size_t size)
{
	char limit[SIZE_TEXT];

	if (!s->gomemlimit || s->memlimit == UINT64_MAX)
		snprintf(buf, size, "GOMEMLIMIT is %s", s->gomemlimit ? "off" : "not set");
	else
		snprintf(buf, size, "GOMEMLIMIT is %s", size_format(s->memlimit, limit));
	return buf;
}

/* What its collector goes by, and what would change that. */
static void go_collector(const struct advice_case *c, struct advices *out)
{
	const struct advice_settings *s = &c->set;
	char gogc[48], limit[48];

	gogc_text(s, gogc, sizeof(gogc));
	gomemlimit_text(s, limit, sizeof(limit));
	if (c->verdict != VERDICT_GO_HEAP) {
		if (s->known)
			advice_add(out, ADVICE_NOTE, "of Go's collector: %s, %s", gogc, limit);
	} else if (!s->known) {
		advice_add(out, ADVICE_LOOK_AT, "Go's heap profile (net/http/pprof)");
	} else if (s->gomemlimit && s->memlimit != UINT64_MAX) {
		advice_add(out, ADVICE_LOOK_AT, "Go's heap profile (net/http/pprof); %s, %s", gogc,
			   limit);
	} else {
		advice_add(out, ADVICE_RESTART,
			   "GOMEMLIMIT=...: none is in force, %s; and Go's heap profile "
			   "(net/http/pprof)",
			   gogc);
	}
}

static void go_notes(const struct advice_case *c, struct advices *out)
{
	uint64_t heap = facts_get(c->facts, FACT_GO_HEAP_RESIDENT);
	uint64_t rss = c->makeup->rss, outside = rss > heap ? rss - heap : 0;
	char a[SIZE_TEXT], b[SIZE_TEXT];

	go_collector(c, out);
	if (facts_known(c->facts, FACT_GO_HEAP_RESIDENT) && outside >= advice_limits.note)
		advice_add(
			out, ADVICE_NOTE,
			"%s of %s (%u %%) are outside of Go's heap: no Go heap profile shows them",
			size_format(outside, a), size_format(rss, b),
			(unsigned)((double)outside * 100 / (double)rss + 0.5));
}

static void look_elsewhere(const struct advice_case *c, struct advices *out)
{
	const struct makeup *m = c->makeup;
	const struct {
		uint64_t bytes;
		const char *text;
	} parts[] = {
		{ m->stacks, "the threads' stacks (`threads`): fewer threads, or smaller stacks" },
		{ m->files, "mapped files (`maps`): the kernel drops clean pages of them when it "
			    "needs memory" },
		{ m->shm, "shared memory and tmpfs (`maps`): only the program can remove it" },
		{ m->jvm, "the JVM: jcmd PID GC.heap_info, and its -Xmx" },
		{ m->other, "anonymous memory that no allocator is known to own (`maps --all`)" },
	};

	if (c->verdict != VERDICT_NOT_ALLOCATOR)
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].bytes >= m->rss / 4)
			advice_add(out, ADVICE_LOOK_AT, "not the allocator, look at %s",
				   parts[i].text);
}

static void by_verdict(const struct advice_case *c, struct advices *out)
{
	if (c->verdict == VERDICT_FRAGMENTED)
		advice_expect(advice_add(out, ADVICE_RESTART,
					 "a restart: no call returns what live blocks hold, and it "
					 "comes again "
					 "unless what stays is allocated apart from what goes"),
			      c->makeup->fragmented);
	if (c->verdict == VERDICT_LIVE)
		advice_add(
			out, ADVICE_LOOK_AT,
			"the program: what it keeps (a heap profile), and whether it still grows "
			"(`watch`)");
	if (c->verdict == VERDICT_LOCKED)
		advice_add(out, ADVICE_LOOK_AT,
			   "who locks the memory: mlockall(2), mlock(2), huge pages");
}

void advice_make(const struct advice_case *c, struct advices *out)
{
	out->n = 0;
	if (c->glibc)
		glibc_now(c, out);
	if (c->jemalloc)
		jemalloc_now(c, out);
	advice_others_now(c, out);
	if (c->glibc) {
		glibc_arena_cap(c, out);
		glibc_thresholds(c, out);
	}
	if (c->jemalloc)
		jemalloc_restart(c, out);
	advice_others_restart(c, out);
	by_verdict(c, out);
	look_elsewhere(c, out);
	if (c->go)
		go_notes(c, out);
	if (c->jemalloc)
		jemalloc_notes(c, out);
	if (c->glibc)
		glibc_notes(c, out);
	if (c->other)
		advice_add(
			out, ADVICE_NOTE,
			"malloc is that of %s: malloc_trim and MALLOC_ARENA_MAX do nothing for it",
			c->other);
}
