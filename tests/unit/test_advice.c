// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/advice.h"

#include <criterion/criterion.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* A case that each test changes. */
struct fixture {
	struct makeup makeup;
	struct facts facts;
	struct glibc_arena_plan arena[4];
	struct glibc_arenas glibc;
	struct advice_case c;
	struct advices out;
};

static void start(struct fixture *x)
{
	memset(x, 0, sizeof(*x));
	x->makeup.rss = 400 * MIB;
	x->c = (struct advice_case){ .verdict = VERDICT_UNDECIDED,
				     .makeup = &x->makeup,
				     .facts = &x->facts };
	x->glibc.plan.arena = x->arena;
	x->glibc.plan.arenas = 4;
	for (unsigned i = 0; i < 4; i++)
		x->arena[i].free_resident = (40 - 10 * i) * MIB;
}

/* The only line of that action with that text in it, or NULL. */
static const struct advice *find(struct fixture *x, enum advice_action action, const char *text)
{
	const struct advice *found = NULL;

	advice_make(&x->c, &x->out);
	for (size_t i = 0; i < x->out.n; i++) {
		const struct advice *a = &x->out.v[i];

		cr_assert_lt(strlen(a->text), sizeof(a->text) - 1);
		if (a->action != action || !strstr(a->text, text))
			continue;
		cr_assert_null(found, "twice: %s", text);
		found = a;
	}
	return found;
}

static void expects(struct fixture *x, enum advice_action action, const char *text, uint64_t bytes)
{
	const struct advice *a = find(x, action, text);

	cr_assert_not_null(a, "%s", text);
	cr_assert(a->known, "%s", text);
	cr_assert_eq(a->expected, bytes, "%s: %lu", text, (unsigned long)a->expected);
}

static void says(struct fixture *x, enum advice_action action, const char *text)
{
	const struct advice *a = find(x, action, text);

	cr_assert_not_null(a, "%s", text);
	cr_assert(!a->known, "%s", text);
}

Test(advice, nothing_is_known_and_nothing_said)
{
	struct fixture x;

	start(&x);
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 0);
	x.c.go = true;
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 0);
}

Test(advice, trim_has_the_predicted_bytes)
{
	struct fixture x;

	start(&x);
	x.c.glibc = &x.glibc;
	x.glibc.plan.total.pages.trimmable = 90 * MIB;
	x.glibc.plan.total.swapped = 5 * MIB;
	expects(&x, ADVICE_TRIM, "malloc_trim(0)", 95 * MIB);
	cr_assert_eq(x.out.v[0].action, ADVICE_TRIM, "what can be done now comes first");
	x.glibc.plan.total.swapped = 0;
	x.glibc.plan.total.pages.trimmable = 4096;
	cr_assert_null(find(&x, ADVICE_TRIM, ""), "a page is not worth a line");
}

Test(advice, a_damaged_heap_is_not_trimmed)
{
	struct fixture x;

	start(&x);
	x.c.glibc = &x.glibc;
	x.glibc.plan.total.pages.trimmable = 90 * MIB;
	x.arena[3].fault.kind = FAULT_SIZE;
	cr_assert_null(find(&x, ADVICE_TRIM, ""));
	says(&x, ADVICE_RESTART, "the heap is damaged");
	x.arena[3].fault.kind = FAULT_NONE;
	x.glibc.plan.ring_fault.kind = FAULT_SIZE;
	cr_assert_null(find(&x, ADVICE_TRIM, ""));
	x.glibc.plan.ring_fault.kind = FAULT_NONE;
	cr_assert_not_null(find(&x, ADVICE_TRIM, ""));
}

/* `trim` would be refused: what is in the way is said in its place. */
Test(advice, no_call_can_be_made)
{
	static char why[600];
	struct fixture x;

	start(&x);
	x.c.glibc = &x.glibc;
	x.c.no_call = "it is stopped";
	x.glibc.plan.total.pages.trimmable = 90 * MIB;
	cr_assert_null(find(&x, ADVICE_TRIM, ""));
	says(&x, ADVICE_LOOK_AT, "a trim would return 90.0 MiB, but no call can be made: it is ");
	cr_assert_eq(x.out.v[0].action, ADVICE_LOOK_AT);
	memset(why, 'y', sizeof(why) - 1);
	x.c.no_call = why;
	says(&x, ADVICE_LOOK_AT, "no call can be made: yyy");
	x.glibc.plan.total.pages.trimmable = 4096;
	cr_assert_null(find(&x, ADVICE_LOOK_AT, "no call"), "a page is not worth a line");
}

Test(advice, arena_max_saves_what_is_free_behind_the_largest)
{
	struct fixture x;

	start(&x);
	cr_assert_eq(advice_beyond(&x.glibc.plan, 2), 30 * MIB);
	cr_assert_eq(advice_beyond(&x.glibc.plan, 4), 0);
	cr_assert_eq(advice_beyond(&x.glibc.plan, 9), 0);
	x.c.glibc = &x.glibc;
	expects(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX=2: free memory", 30 * MIB);
	x.glibc.plan.arenas = 2;
	cr_assert_null(find(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX"), "two arenas are no more");
}

/* The cap that is advised, and what one that is twice as wide would have saved. */
static const struct {
	unsigned arenas, allowed;
	uint64_t attached;
	uint64_t first, rest; /* free MiB of the first arena, and of each other */
	unsigned cap;
} caps[] = {
	{ 9, 2, 9, 38, 38, 2 },
	/* of many arenas eight are as good as two: no thread need wait for it */
	{ 64, 64, 64, 10, 10, 8 },
	{ 40, 64, 40, 10, 10, 4 },
	{ 16, 64, 16, 10, 10, 2 },
	/* all is in one */
	{ 16, 4, 16, 1000, 0, 8 },
	/* nobody waits for anybody: one thread, or one CPU */
	{ 9, 2, 1, 38, 38, 1 },
	{ 9, 1, 9, 38, 38, 1 },
	/* what is not known makes no tighter cap */
	{ 9, 0, 9, 38, 38, 2 },
	{ 9, 8, 0, 38, 38, 2 },
	{ 9, 0, 0, 38, 38, 2 },
	{ 1, 0, 0, 38, 38, 8 },
};

Test(advice, as_many_arenas_as_save_nearly_as_much)
{
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct glibc_arena_plan arena[64] = { 0 };
		struct glibc_arenas a = { .allowed = caps[i].allowed };

		a.plan.arena = arena;
		a.plan.arenas = caps[i].arenas;
		a.plan.total.attached = caps[i].attached;
		for (unsigned k = 0; k < caps[i].arenas; k++)
			arena[k].free_resident = (k ? caps[i].rest : caps[i].first) * MIB;
		cr_expect_eq(advice_arena_cap(&a), caps[i].cap, "row %zu: %u", i,
			     advice_arena_cap(&a));
	}
}

Test(advice, a_wider_cap_has_its_price)
{
	struct fixture x;

	start(&x);
	x.c.glibc = &x.glibc;
	x.arena[1].free_resident = x.arena[2].free_resident = 300 * MIB;
	cr_assert_null(strstr(find(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX=2:")->text, "with 4"),
		       "there are no more than four");
	x.glibc.allowed = 1;
	expects(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX=1:", 610 * MIB);
	cr_assert_null(find(&x, ADVICE_RESTART, "wait for each other"), "on one CPU");
	expects(&x, ADVICE_RESTART, "(with 2: -310.0 MiB)", 610 * MIB);
}

/* What is in force is said, and never advised again. */
Test(advice, arena_max_that_is_set)
{
	struct fixture x;
	struct advice_settings *set = &x.c.set;
	struct glibc_par *par = &x.glibc.plan.par;

	start(&x);
	x.c.glibc = &x.glibc;
	par->at = 1;
	par->arena_max = 8;
	expects(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX=2 in place of 8, which is set: free",
		30 * MIB);
	set->known = true;
	expects(&x, ADVICE_RESTART, "in place of 8, which is set by mallopt (where", 30 * MIB);
	set->arena_max = 8;
	expects(&x, ADVICE_RESTART, "in place of 8, which is set by MALLOC_ARENA_MAX: free",
		30 * MIB);
	set->tunables = set->arena_max_tunable = true;
	expects(&x, ADVICE_RESTART,
		"GLIBC_TUNABLES=...:glibc.malloc.arena_max=2 in place of 8, which is set by "
		"GLIBC_TUNABLES: free",
		30 * MIB);
	cr_assert_null(find(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX"), "the other one wins");
	par->arena_max = set->arena_max = 2;
	says(&x, ADVICE_NOTE, "arena_max is 2 already by GLIBC_TUNABLES, but");
	cr_assert_null(find(&x, ADVICE_RESTART, "arena_max"));
	cr_assert_null(find(&x, ADVICE_NOTE, "for the next one"), "it has it");
	set->arena_max = 0;
	says(&x, ADVICE_NOTE, "for the next one: MALLOC_ARENA_MAX=2 (or GLIBC_TUNABLES=...:");
	set->known = false;
	says(&x, ADVICE_NOTE, "arena_max is 2 already, but the process has 4 arenas");
	cr_assert_null(find(&x, ADVICE_NOTE, "for the next one"), "it may have it");
	cr_assert_null(find(&x, ADVICE_RESTART, "MALLOC_ARENA_MAX"));
	/* where glibc's own word cannot be read, the environment is all there is */
	par->at = par->arena_max = 0;
	set->known = true;
	set->tunables = set->arena_max_tunable = false;
	set->arena_max = 2;
	says(&x, ADVICE_NOTE, "arena_max is 2 already by MALLOC_ARENA_MAX");
}

Test(advice, tunables_that_are_set_are_kept)
{
	struct fixture x;
	struct glibc_par *par = &x.glibc.plan.par;

	start(&x);
	x.c.glibc = &x.glibc;
	x.c.set.known = x.c.set.tunables = true;
	expects(&x, ADVICE_RESTART,
		"MALLOC_ARENA_MAX=2 (or GLIBC_TUNABLES=...:glibc.malloc.arena_max=2): free",
		30 * MIB);
	par->at = 1;
	par->mmap_threshold = 24 * MIB;
	x.glibc.plan.total.free_resident = 60 * MIB;
	says(&x, ADVICE_RESTART, "GLIBC_TUNABLES=...:glibc.malloc.mmap_threshold=131072:");
}

Test(advice, thresholds_that_have_risen)
{
	struct fixture x;
	struct glibc_par *par = &x.glibc.plan.par;

	start(&x);
	x.c.glibc = &x.glibc;
	par->at = 1;
	par->mmap_threshold = 128 << 10;
	x.glibc.plan.total.free_resident = 60 * MIB;
	cr_assert_null(find(&x, ADVICE_RESTART, "GLIBC_TUNABLES"), "the default");
	par->mmap_threshold = 24 * MIB;
	par->trim_threshold = 48 * MIB;
	says(&x, ADVICE_RESTART,
	     "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold="
	     "131072");
	cr_assert_not_null(find(&x, ADVICE_RESTART, "risen to 24.0 MiB and 48.0 MiB"));
	x.glibc.plan.total.from_top = 20 * MIB;
	expects(&x, ADVICE_RESTART, "GLIBC_TUNABLES", 20 * MIB - (128 << 10));
	par->no_dyn_threshold = true;
	cr_assert_null(find(&x, ADVICE_RESTART, "GLIBC_TUNABLES"), "frozen");
	par->no_dyn_threshold = false;
	par->at = 0;
	cr_assert_null(find(&x, ADVICE_RESTART, "GLIBC_TUNABLES"), "not known");
}

Test(advice, where_a_remedy_does_not_help)
{
	struct fixture x;
	struct glibc_arena_plan *t = &x.glibc.plan.total;

	start(&x);
	x.c.glibc = &x.glibc;
	cr_assert_null(find(&x, ADVICE_NOTE, ""));
	x.c.heap_resident = 100 * MIB;
	x.c.main_resident = 40 * MIB;
	cr_assert_null(find(&x, ADVICE_NOTE, "main arena"));
	x.c.main_resident = 60 * MIB;
	says(&x, ADVICE_NOTE, "60.0 MiB of 100.0 MiB of the heap are in the main arena");
	t->locked = 3 * MIB;
	says(&x, ADVICE_NOTE, "3.0 MiB are free but locked");
	t->hugetlb = 2 * MIB;
	says(&x, ADVICE_NOTE, "2.0 MiB are free but of the pool of huge pages");
	t->huge = 4 * MIB;
	says(&x, ADVICE_NOTE, "4.0 MiB of what a trim returns are in huge pages");
	facts_set(&x.facts, FACT_GLIBC_TCACHE, FROM_PASSIVE, 5 * MIB);
	says(&x, ADVICE_NOTE, "5.0 MiB are in the threads' caches");
	x.c.other = "tcmalloc";
	says(&x, ADVICE_NOTE, "malloc is that of tcmalloc");
}

Test(advice, jemalloc)
{
	struct fixture x;

	start(&x);
	x.c.jemalloc = "";
	x.makeup.unasked = 100 * MIB;
	says(&x, ADVICE_LOOK_AT, "jemalloc was not asked");
	cr_assert_null(find(&x, ADVICE_PURGE, ""), "nothing is known of it");
	facts_set(&x.facts, FACT_JEMALLOC_PURGEABLE, FROM_CALL, 2 * MIB);
	says(&x, ADVICE_LOOK_AT, "built without statistics");
	expects(&x, ADVICE_PURGE, "a purge of all arenas", 2 * MIB);
	x.makeup.unasked = 0;
	facts_set(&x.facts, FACT_JEMALLOC_ALLOCATED, FROM_CALL, 200 * MIB);
	cr_assert_null(find(&x, ADVICE_LOOK_AT, ""));
	expects(&x, ADVICE_PURGE, "a purge of all arenas", 2 * MIB);
	cr_assert_null(find(&x, ADVICE_RESTART, ""), "two megabytes");
	facts_set(&x.facts, FACT_JEMALLOC_PURGEABLE, FROM_CALL, 90 * MIB);
	expects(&x, ADVICE_RESTART, "MALLOC_CONF=background_thread:true,", 90 * MIB);
	x.c.jemalloc = "_rjem_";
	x.c.set.known = x.c.set.malloc_conf = true;
	expects(&x, ADVICE_RESTART, "_RJEM_MALLOC_CONF=...,background_thread:true", 90 * MIB);
	says(&x, ADVICE_NOTE, "_RJEM_MALLOC_CONF is set already");
}

Test(advice, name_of_jemallocs_variable)
{
	char buf[64];

	cr_assert_str_eq(advice_conf_name("", buf, sizeof(buf)), "MALLOC_CONF");
	cr_assert_str_eq(advice_conf_name("je_", buf, sizeof(buf)), "JE_MALLOC_CONF");
	cr_assert_str_eq(advice_conf_name("_rjem_", buf, sizeof(buf)), "_RJEM_MALLOC_CONF");
}

Test(advice, go)
{
	struct fixture x;

	start(&x);
	x.c.go = true;
	x.c.verdict = VERDICT_GO_HEAP;
	facts_set(&x.facts, FACT_GO_HEAP_RESIDENT, FROM_PASSIVE, 300 * MIB);
	says(&x, ADVICE_NOTE, "100.0 MiB of 400.0 MiB (25 %) are outside of Go's heap");
	says(&x, ADVICE_LOOK_AT, "Go's heap profile");
	x.c.set.known = true;
	says(&x, ADVICE_RESTART, "GOMEMLIMIT=...: none is in force, GOGC is not set (100)");
	x.c.set.gogc = true;
	x.c.set.gogc_percent = -1;
	says(&x, ADVICE_RESTART, "GOGC is off");
	x.c.set.gogc_percent = 400;
	x.c.set.gomemlimit = true;
	x.c.set.memlimit = UINT64_MAX;
	says(&x, ADVICE_RESTART, "GOGC is 400");
	x.c.set.memlimit = 512 * MIB;
	says(&x, ADVICE_LOOK_AT, "GOGC is 400, GOMEMLIMIT is 512.0 MiB");
	cr_assert_null(find(&x, ADVICE_RESTART, ""));
	/* also where Go's heap is not what most of it is */
	x.c.verdict = VERDICT_RETAINED;
	says(&x, ADVICE_NOTE, "GOGC is 400, GOMEMLIMIT is 512.0 MiB");
	x.c.set.memlimit = UINT64_MAX;
	says(&x, ADVICE_NOTE, "GOMEMLIMIT is off");
	x.c.set.gogc = x.c.set.gomemlimit = false;
	says(&x, ADVICE_NOTE, "GOGC is not set (100), GOMEMLIMIT is not set");
	x.c.set.known = false;
	cr_assert_null(find(&x, ADVICE_NOTE, "GOGC"));
}

Test(advice, by_the_verdict)
{
	struct fixture x;

	start(&x);
	x.makeup.fragmented = 120 * MIB;
	x.c.verdict = VERDICT_FRAGMENTED;
	expects(&x, ADVICE_RESTART, "no call returns what live blocks hold", 120 * MIB);
	x.c.verdict = VERDICT_LIVE;
	says(&x, ADVICE_LOOK_AT, "what it keeps");
	x.c.verdict = VERDICT_LOCKED;
	says(&x, ADVICE_LOOK_AT, "mlockall(2)");
	x.c.verdict = VERDICT_HEALTHY;
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 0);
}

Test(advice, it_is_not_the_allocator)
{
	static const char *const words[] = { "stacks", "mapped files", "shared memory", "JVM",
					     "anonymous memory" };
	struct fixture x;
	uint64_t *part[] = { &x.makeup.stacks, &x.makeup.files, &x.makeup.shm, &x.makeup.jvm,
			     &x.makeup.other };

	for (size_t i = 0; i < 5; i++) {
		static const char text[] = "not the allocator, look at";

		start(&x);
		*part[i] = 300 * MIB;
		cr_assert_null(find(&x, ADVICE_LOOK_AT, text));
		x.c.verdict = VERDICT_NOT_ALLOCATOR;
		says(&x, ADVICE_LOOK_AT, text);
		cr_assert_not_null(find(&x, ADVICE_LOOK_AT, words[i]), "%s", words[i]);
	}
}

Test(advice, tcmalloc_spans_and_caches)
{
	struct fixture x;

	start(&x);
	x.c.tcmalloc = true;
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 0);
	facts_set(&x.facts, FACT_TCMALLOC_PAGEHEAP_FREE, FROM_CALL, 90 * MIB);
	facts_set(&x.facts, FACT_TCMALLOC_THREAD_CACHES, FROM_CALL, 24 * MIB);
	facts_set(&x.facts, FACT_TCMALLOC_THREAD_CACHES_MAX, FROM_CALL, 32 * MIB);
	expects(&x, ADVICE_TRIM, "`trim`: a release returns tcmalloc's free spans", 90 * MIB);
	expects(&x, ADVICE_RESTART, "TCMALLOC_RELEASE_RATE=10 ", 90 * MIB);
	expects(&x, ADVICE_RESTART,
		"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=6291456: the threads' caches hold 24.0 MiB "
		"of at most 32.0 MiB",
		18 * MIB);
	/* Google's reads no such variables */
	x.c.google = true;
	expects(&x, ADVICE_TRIM, "`trim`", 90 * MIB);
	cr_assert_eq(x.out.n, 1);
}

/* Each of the versions has names of its own. */
Test(advice, mimalloc_by_version)
{
	static const struct {
		const char *version, *says;
	} cases[] = {
		{ "1.6.7", "MIMALLOC_PAGE_RESET=1 " },	   { "1.8.8", "MIMALLOC_PURGE_DELAY=0 " },
		{ "2.0.9", "MIMALLOC_DECOMMIT_DELAY=0 " }, { "2.1.7", "MIMALLOC_PURGE_DELAY=0 " },
		{ "3.1.5", "MIMALLOC_PURGE_DELAY=0 " },
	};
	struct fixture x;

	start(&x);
	x.c.mimalloc = "2.0.9";
	x.c.mimalloc_resident = 15 * MIB;
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 0);
	x.c.mimalloc_resident = 100 * MIB;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		x.c.mimalloc = cases[i].version;
		says(&x, ADVICE_RESTART, cases[i].says);
	}
	says(&x, ADVICE_TRIM, "`--via direct --thread TID trim`");
	says(&x, ADVICE_NOTE, "mimalloc does not tell what is in use");
	x.c.no_call = "it is stopped";
	x.c.mimalloc = "";
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 1, "neither a trim nor a name that may be wrong");
}

Test(advice, musl_has_no_remedy_of_its_own)
{
	struct fixture x;

	start(&x);
	x.c.musl_resident = 15 * MIB;
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, 0);
	x.c.musl_resident = 16 * MIB;
	says(&x, ADVICE_RESTART, "another malloc, linked in or preloaded");
	cr_assert_eq(x.out.n, 1);
}

Test(advice, no_more_than_fits)
{
	struct fixture x;

	cr_assert_str_eq(advice_action_name(ADVICE_TRIM), "trim");
	cr_assert_str_eq(advice_action_name(ADVICE_LOOK_AT), "look-at");
	start(&x);
	x.c.glibc = &x.glibc;
	x.c.jemalloc = "je_";
	x.c.other = "mimalloc";
	x.c.go = x.c.set.known = x.c.set.malloc_conf = true;
	x.c.verdict = VERDICT_NOT_ALLOCATOR;
	x.makeup.shm = x.makeup.other = x.makeup.jvm = 130 * MIB;
	x.makeup.unasked = MIB;
	facts_set(&x.facts, FACT_GO_HEAP_RESIDENT, FROM_PASSIVE, MIB);
	facts_set(&x.facts, FACT_GLIBC_TCACHE, FROM_PASSIVE, 5 * MIB);
	facts_set(&x.facts, FACT_JEMALLOC_PURGEABLE, FROM_CALL, 90 * MIB);
	x.glibc.plan.par = (struct glibc_par){ .at = 1, .mmap_threshold = MIB };
	x.glibc.plan.total = (struct glibc_arena_plan){ .pages.trimmable = 9 * MIB,
							.free_resident = 90 * MIB,
							.locked = 9 * MIB,
							.hugetlb = 9 * MIB,
							.huge = 9 * MIB };
	x.c.heap_resident = x.c.main_resident = 90 * MIB;
	advice_make(&x.c, &x.out);
	cr_assert_eq(x.out.n, ADVICE_MAX);
	cr_assert_not_null(strstr(x.out.v[ADVICE_MAX - 1].text, "mimalloc"));
}
