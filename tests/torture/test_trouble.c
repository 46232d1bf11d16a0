// SPDX-License-Identifier: GPL-3.0-or-later
/* Heaps in trouble: a damaged one is told with its place and left alone, a healthy one is never
 * taken for one however busy it is, and an abort that happens all the same is explained. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "torture.h"

#ifdef __SANITIZE_ADDRESS__
enum { SLOW = 10 };
#else
enum { SLOW = 1 };
#endif

/* ---- damage that a call would meet */

struct scene {
	const char *kind, *where;
	const char *code; /* what `check` calls it */
	long long arena;
	bool used; /* in a chunk in use: no call goes there, only `check` looks */
};

static const struct scene scenes[] = {
	{ "size", "single", "chunk-size", 0, false }, { "size", "main", "chunk-size", 0, false },
	{ "size", "thread", "chunk-size", 1, false }, { "fd", "single", "list-link", 0, false },
	{ "fd", "thread", "list-link", 1, false },    { "bk", "main", "list-broken", 0, false },
	{ "prev", "single", "prev-size", 0, false },  { "prev", "thread", "prev-size", 1, false },
	{ "top", "main", "top-size", 0, false },      { "top", "thread", "top-size", 1, false },
	{ "fastbin", "single", "fastbin", 0, false }, { "fastbin", "thread", "fastbin", 1, false },
	{ "loop", "main", "list-loop", 0, false },    { "info", "thread", "heap-info", 1, false },
	{ "ring", "thread", "arena-ring", 1, false }, { "used", "single", "chunk-size", 0, true },
	{ "used", "main", "chunk-size", 0, true },    { "used", "thread", "chunk-size", 1, true },
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

/* The place of its damage is the victim's name. */
static void place_of(const struct victim *v, char *buf, size_t size)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", v->pid);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	cr_assert_not_null(fgets(name, sizeof(name), f));
	fclose(f);
	name[strcspn(name, "\n")] = '\0';
	snprintf(buf, size, "0x%s", name);
}

static void refused(const struct victim *v, const char *place, const char *command)
{
	char words[64], number[16];
	const char *args[RUN_ARGS] = { "-p", number, "--json" };
	const struct run_opts o = { 0 };
	size_t n = 3;
	struct run r;
	json_t *j;

	snprintf(number, sizeof(number), "%d", v->pid);
	snprintf(words, sizeof(words), "%s", command);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		args[n++] = w;
	run_with(&r, &o, args);
	run_expect(&r, 6);
	j = json_loads(r.out, 0, NULL);
	cr_assert_not_null(j, "%s", r.out);
	cr_assert_str_eq(json_text(j, "error.code"), "damaged-heap", "%s: %s", command, r.out);
	cr_assert_not_null(strstr(json_text(j, "error.text"), place), "%s, not %s",
			   json_text(j, "error.text"), place);
	cr_assert_not_null(strstr(json_text(j, "error.hint"), "gcore"), "%s", r.out);
	json_decref(j);
	run_free(&r);
}

static void checked(const struct victim *v, const struct scene *s, const char *place)
{
	struct run r;
	json_t *j;

	run(&r, v->pid, "--json", "check", NULL);
	run_expect(&r, 6);
	j = json_loads(r.out, 0, NULL);
	cr_assert_not_null(j, "%s", r.out);
	cr_assert_str_eq(json_text(j, "error.code"), "damaged-heap");
	cr_assert(json_bool(j, "result.heap.damaged"));
	cr_assert_str_eq(json_text(j, "result.heap.kind"), s->code);
	cr_assert_str_eq(json_text(j, "result.heap.address"), place);
	cr_assert_eq(json_int(j, "result.heap.arena"), s->arena);
	json_decref(j);
	run_free(&r);
}

/* Bytes of the victim's own memory that are resident: a look must not bring in a page. */
static long anonymous(const struct victim *v)
{
	return proc_number(v->pid, "smaps_rollup", "Anonymous:");
}

static void play(const struct scene *s)
{
	static const char *const commands[] = { "trim", "info", "stats",
						"mallopt M_TRIM_THRESHOLD 131072",
						"trim --via direct" };
	static struct state state;
	struct victim v;
	char place[40];
	long before, after;

	victim_start_named(&v, "damaged", s->kind, s->where);
	place_of(&v, place, sizeof(place));
	state_take(&v, &state);
	before = anonymous(&v);
	for (size_t i = 0; !s->used && i < sizeof(commands) / sizeof(commands[0]); i++)
		refused(&v, place, commands[i]);
	checked(&v, s, place);
	after = anonymous(&v);
	cr_assert_eq(after, before, "%s %s: it has grown from %ld KiB to %ld", s->kind, s->where,
		     before, after);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(trouble, a_damaged_heap_is_told_and_left_alone, .timeout = 3600)
{
	unsigned rounds = torture_rounds(2, 1), played = 0;

	for (unsigned k = 0; k < rounds; k++)
		for (size_t i = 0; i < SCENES; i++) {
			/* briefly, and under sanitizers, every third */
			if ((SLOW > 1 || !torture_full()) && i % 3 != k % 3)
				continue;
			play(&scenes[i]);
			played++;
		}
	torture_figure("damaged heaps: %u told with their place, none touched", played);
}

/* Two threads, a third of ours, and nobody traces one of them: a call has been made and is over. */
static bool parked(pid_t pid)
{
	pid_t tid[8];
	size_t n = proc_tids(pid, tid, 8);
	char path[64];

	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "task/%d/status", tid[i]);
		if (proc_number(pid, path, "TracerPid:") != 0)
			return false;
	}
	return n == 3;
}

/* In a child: a write to a block that was freed, once the session is there. */
static void damage_later(pid_t pid, uint64_t chunk)
{
	uint64_t wild = 0x4141414141414140;
	struct iovec here = { &wild, sizeof(wild) };
	struct iovec there = { (void *)(uintptr_t)(chunk + 16), sizeof(wild) };

	while (!parked(pid))
		sleep_ns(1000000);
	_exit(process_vm_writev(pid, &here, 1, &there, 1, 0) == sizeof(wild) ? 0 : 1);
}

/* Also in a session that is open the heap is looked at before each call. */
Test(trouble, damage_in_the_middle_of_a_session, .timeout = 600)
{
	const struct run_opts o = { .input = "info\nsleep 1s\ntrim\n" };
	char number[16], place[40];
	struct victim v;
	struct run r;
	int status;
	pid_t child;

	victim_start_named(&v, "damaged", "none", "thread");
	place_of(&v, place, sizeof(place));
	snprintf(number, sizeof(number), "%d", v.pid);
	child = fork();
	if (child == 0)
		damage_later(v.pid, strtoull(place, NULL, 16));
	cr_assert_gt(child, 0);
	run_with(&r, &o, (const char *[]){ "-p", number, NULL });
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	run_expect(&r, 6);
	cr_assert_not_null(strstr(r.out, "ARENA"), "the first command: %s%s", r.out, r.err);
	cr_assert_not_null(strstr(r.err, place), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}

/* ---- what happens where nobody looks first */

static void forced(const char *where, const char *via)
{
	struct victim v;
	struct run r;
	int status;

	victim_start_named(&v, "damaged", "fastbin", where);
	run(&r, v.pid, "--via", via, "trim", "--force", NULL);
	run_expect(&r, 9);
	cr_assert_not_null(strstr(r.err, "SIGABRT"), "%s", r.err);
	cr_assert_not_null(strstr(r.err, "malloc_consolidate(): unaligned fastbin chunk"), "%s",
			   r.err);
	run_free(&r);
	if (strcmp(via, "proxy") == 0) {
		cr_assert_eq(waitpid(v.pid, &status, 0), v.pid);
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x", status);
		return;
	}
	/* taken out of the call, the thread runs on */
	sleep_ns(200000000);
	cr_assert(strchr("SR", proc_state(v.pid)), "state %c", proc_state(v.pid));
	victim_kill(&v);
}

Test(trouble, an_abort_is_explained, .timeout = 600)
{
	unsigned rounds = torture_rounds(5, 1);

	for (unsigned i = 0; i < rounds; i++) {
		forced("thread", "proxy");
		forced("single", "direct");
		forced("thread", "direct");
	}
	torture_figure("aborts explained: %u in proxies, %u in direct calls", rounds, 2 * rounds);
}

/* ---- never a false alarm */

static unsigned looked_whole, looked_partly;

static void look(const struct victim *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct run r;
		json_t *j;

		run(&r, v->pid, "--json", "check", NULL);
		/* no thread may be usable right now; the heap is looked at all the same */
		cr_assert(r.exit == 0 || r.exit == 6, "%s%s", r.out, r.err);
		j = json_loads(r.out, 0, NULL);
		cr_assert_not_null(j, "%s", r.out);
		cr_assert_not(json_bool(j, "result.heap.damaged"), "a false alarm: %s", r.out);
		if (json_bool(j, "result.heap.complete"))
			looked_whole++;
		else
			looked_partly++;
		json_decref(j);
		run_free(&r);
	}
}

static void look_at(const char *name, const char *arg, unsigned n)
{
	struct victim v;

	victim_start_named(&v, name, arg, NULL);
	look(&v, n);
	victim_stop(&v);
}

Test(trouble, no_false_alarm, .timeout = 3600)
{
	unsigned n = torture_rounds(120, 4) / SLOW + 1;

	look_at("busy", "4", 2 * n);
	look_at("busy", "1", n);
	look_at("single", NULL, 2 * n);
	look_at("eight", NULL, n);
	look_at("retained", "4", n);
	torture_figure("busy heaps looked at: %u times whole, %u in part, no false alarm",
		       looked_whole, looked_partly);
}
