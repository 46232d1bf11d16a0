// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * No interruption shows in any kind of blocking system call: nothing ends early or with an error,
 * and a timeout that is hit many times ends when it should. The victim "blocked" checks each wait;
 * here are the injections, and the look at how late the timed waits end.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "../victims/blocked.h"
#include "crash.h"
#include "torture.h"

/*
 * A timed wait is hit by some thirty sessions. It may end this much later than it should, and as
 * late as an undisturbed thread of the same process at its worst meanwhile.
 */
#define LATE_US 10000u

enum {
	GROUP = 5, /* kinds in one victim */
	TIMEOUT_MS = 300,
	STOP_EVERY = 25,
	FEW = 5,
};

/* Under sanitizers a session takes half a second. */
#ifdef __SANITIZE_ADDRESS__
enum { FULL = 20, BRIEF = 1, REFUSALS = 1 };
#else
enum { FULL = 1000, BRIEF = 4, REFUSALS = 50 };
#endif

static struct {
	unsigned kinds, injections, refused, waits, outliers;
	uint32_t *late; /* us, of all timed waits whose time is the call's own */
	size_t n, room;
	uint32_t worst_quiet;
	char forbidden[128];
} total;

static int board_fd;
static struct blocked_board *board;

static void board_open(void)
{
	board_fd = memfd_create("board", 0);
	cr_assert_eq(ftruncate(board_fd, sizeof(*board)), 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, board_fd, 0);
	cr_assert_neq(board, MAP_FAILED);
}

static void start_group(struct victim *v, unsigned first, unsigned n, const char *option)
{
	char path[64], from[16], count[16], ms[16];
	struct victim_plan plan = { .argv = { "@blocked", path, from, count, ms, option } };

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), board_fd);
	snprintf(from, sizeof(from), "%u", first);
	snprintf(count, sizeof(count), "%u", n);
	snprintf(ms, sizeof(ms), "%d", TIMEOUT_MS);
	victim_start(v, &plan);
}

static void stop_and_continue(const struct victim *v)
{
	cr_assert_eq(kill(v->pid, SIGSTOP), 0);
	proc_wait_state(v->pid, "T");
	cr_assert_eq(kill(v->pid, SIGCONT), 0);
	proc_wait_state(v->pid, "SR");
}

static bool warned(const struct run *r, pid_t pid, const char *command, const char *code)
{
	json_t *o = run_json(r, 0, pid, command);
	bool found = json_warned(o, code);

	json_decref(o);
	return found;
}

/* One session on the thread of this kind. Returns whether it was told that its wait begins anew. */
static bool inject(struct victim *v, struct blocked_slot *s)
{
	bool anew = false;
	struct run r;
	char tid[16];

	snprintf(tid, sizeof(tid), "%d", s->tid);
	__atomic_add_fetch(&s->hits, 1, __ATOMIC_SEQ_CST);
	if (s->flags & BLOCKED_REFUSED) {
		run(&r, v->pid, "--thread", tid, "--deadline", "1ms", "trim", NULL);
		run_expect(&r, 6);
		total.refused++;
	} else {
		run(&r, v->pid, "--thread", tid, "--json", "trim", NULL);
		/* what it has to say tells more than what we have seen of it */
		if (r.exit)
			victim_check(v);
		run_expect(&r, 0);
		anew = warned(&r, v->pid, "trim", "wait-begins-anew");
		total.injections++;
	}
	run_free(&r);
	victim_check(v);
	return anew;
}

static void torture_kind(struct victim *v, struct blocked_slot *s)
{
	unsigned rounds = torture_rounds(FULL, BRIEF), anew = 0;

	if (s->forbidden[0]) {
		size_t at = strlen(total.forbidden);

		snprintf(total.forbidden + at, sizeof(total.forbidden) - at, ", %s: %s", s->name,
			 s->forbidden);
		return;
	}
	if (s->flags & BLOCKED_REFUSED)
		rounds = torture_rounds(REFUSALS * 10, REFUSALS) / 10 + 1;
	for (unsigned i = 0; i < rounds; i++) {
		anew += inject(v, s);
		if (s->flags & BLOCKED_STOPPED && i % STOP_EVERY == STOP_EVERY / 2)
			stop_and_continue(v);
	}
	/* between two waits a thread may be caught outside of one */
	if (s->flags & BLOCKED_ANEW)
		cr_expect_gt(anew, rounds / 2, "%s: begins anew, said %u times of %u", s->name,
			     anew, rounds);
	else
		cr_expect_eq(anew, 0, "%s: does not begin anew, said %u times", s->name, anew);
	total.kinds++;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t median(uint32_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return n ? v[n / 2] : 0;
}

static void collect(uint32_t late)
{
	if (total.n == total.room) {
		total.room = total.room ? total.room * 2 : 1024;
		total.late = realloc(total.late, total.room * sizeof(*total.late));
		cr_assert_not_null(total.late);
	}
	total.late[total.n++] = late;
}

/*
 * A few waits may be later than allowed where the machine does other things: two, and one in ten.
 * They are counted and told. Were the lateness of a kind's own, its median would show it; of four
 * waits and fewer, these two would be it.
 */
static void check_lateness(struct blocked_slot *s)
{
	unsigned n = s->n, outliers = 0;
	uint32_t worst = 0, quiet;

	total.waits += s->waits;
	if (!s->ms || s->flags & BLOCKED_ANEW || s->forbidden[0])
		return;
	for (unsigned i = 0; i < n; i++) {
		outliers += s->late[i] > s->quiet[i] + LATE_US;
		collect(s->late[i]);
		worst = s->late[i] > worst ? s->late[i] : worst;
		total.worst_quiet =
			s->quiet[i] > total.worst_quiet ? s->quiet[i] : total.worst_quiet;
	}
	total.outliers += outliers;
	quiet = median(s->quiet, n);
	if (getenv("BLOCKED_VERBOSE"))
		fprintf(stderr,
			"%-28s %4u waits, %u hits, late median %u worst %u us, quiet %u, outliers "
			"%u\n",
			s->name, n, median(s->hit, n), median(s->late, n), worst, quiet, outliers);
	cr_expect_gt(n, 0, "%s: not one wait has ended", s->name);
	cr_expect(n < FEW || median(s->late, n) <= LATE_US + quiet,
		  "%s: ends %u us late, %u when quiet", s->name, median(s->late, n), quiet);
	cr_expect_leq(outliers, 2 + n / 10, "%s: %u of %u end late, the worst by %u us", s->name,
		      outliers, n, worst);
}

static void torture_group(unsigned first, unsigned n)
{
	static struct state state;
	struct victim v;

	start_group(&v, first, n, NULL);
	state_take(&v, &state);
	for (unsigned i = first; i < first + n && i < board->kinds; i++)
		torture_kind(&v, &board->slot[i]);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
	for (unsigned i = first; i < first + n && i < board->kinds; i++)
		check_lateness(&board->slot[i]);
}

/* Every other group of kinds: `make torture` runs the two halves side by side. */
static void torture_half(unsigned half)
{
	unsigned first = 0, group = 0;
	uint32_t middle;

	board_open();
	do {
		/* the kinds that are stopped and continued are the first three */
		unsigned n = first ? GROUP : 3;

		if (group++ % 2 == half)
			torture_group(first, n);
		first += n;
	} while (!board->kinds || first < board->kinds);
	cr_assert_geq(total.kinds, 15, "only %u kinds could be tried", total.kinds);
	middle = median(total.late, total.n);
	torture_figure(
		"%u kinds of blocking call, %u injections, %u waits ended: 0 early, 0 errors; "
		"late median %.1f ms, worst %.1f ms (undisturbed thread %.1f ms), %u of %zu "
		"over 10 ms; %u refused%s",
		total.kinds, total.injections, total.waits, middle / 1e3,
		total.late[total.n - 1] / 1e3, total.worst_quiet / 1e3, total.outliers, total.n,
		total.refused, total.forbidden);
	free(total.late);
}

Test(blocked, no_interruption_shows, .timeout = 3600)
{
	torture_half(0);
}

Test(blocked, no_interruption_shows_in_others, .timeout = 3600)
{
	torture_half(1);
}

/* Threads that wait for a time that only their socket knows are told, and are the last choice. */
Test(blocked, a_timeout_of_a_socket_is_the_last_choice, .timeout = 300)
{
	bool others_over = false;
	unsigned told = 0;
	struct victim v;
	struct run r;
	json_t *o, *th;
	size_t i;

	board_open();
	start_group(&v, 0, BLOCKED_KINDS, NULL);
	run(&r, v.pid, "--json", "threads", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "threads");
	json_array_foreach(json_at(o, "result.threads"), i, th)
	{
		bool anew = json_bool(th, "begins_anew");

		told += anew;
		others_over |= anew;
		if (json_bool(th, "usable"))
			cr_expect(anew || !others_over, "thread %lld comes too late",
				  json_int(th, "tid"));
	}
	/* one of the three may be between two waits just now */
	cr_expect(told >= 2 && told <= 3, "%u threads would begin anew", told);
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "--json", "trim", NULL);
	run_expect(&r, 0);
	cr_expect_not(warned(&r, v.pid, "trim", "wait-begins-anew"));
	run_free(&r);
	victim_stop(&v);
}

/* Where there is no other thread it is borrowed, and that is said before and after. */
Test(blocked, no_other_choice_than_a_timeout_of_a_socket, .timeout = 300)
{
	const struct victim_plan plan = {
		.argv = { "python3", "-c",
			  "import socket, struct\n"
			  "a, b = socket.socketpair()\n"
			  "a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', "
			  "3600, 0))\n"
			  "print('ready', flush=True)\n"
			  "a.recv(1)\n" }
	};
	static const char *const commands[] = { "check", "trim" };
	struct victim v;

	victim_start(&v, &plan);
	proc_wait_state(v.pid, "S");
	for (size_t i = 0; i < 2; i++) {
		struct run r;

		run(&r, v.pid, "--json", commands[i], NULL);
		run_expect(&r, 0);
		cr_expect(warned(&r, v.pid, commands[i], "wait-begins-anew"), "%s does not tell",
			  commands[i]);
		run_free(&r);
		victim_check(&v);
	}
	victim_kill(&v);
}

static bool killed_at(unsigned point, pid_t pid, pid_t thread)
{
	char target[16], tid[16];
	const char *const args[] = { "-p", target, "--thread", tid, "trim", NULL };

	snprintf(target, sizeof(target), "%d", pid);
	snprintf(tid, sizeof(tid), "%d", thread);
	return crash_run_at(point, args);
}

/*
 * Killed before each request (briefly: one in seven) that touches the target, with the wait carried
 * over from a whole run before: the wait does not end early and not in something else than EINTR.
 * It may begin anew.
 */
static unsigned kill_in_wait(struct victim *v, struct blocked_slot *s)
{
	/* briefly, other places each time */
	const unsigned step = torture_rounds(1, 7), first = 1 + (unsigned)getpid() % step;
	unsigned point = first;

	for (bool killed = true; killed && point < 500; point += step) {
		inject(v, s);
		killed = killed_at(point, v->pid, s->tid);
		victim_check(v);
	}
	cr_assert_gt(point, 30, "%s: only %u places to be killed at", s->name, point);
	cr_assert_lt(point, 500);
	return (point - first) / step;
}

Test(blocked, a_kill_ends_no_wait_early, .timeout = 600)
{
	static const char *const names[] = {
		"epoll_wait", "epoll_pwait2", "sigtimedwait",
		"ppoll",      "semtimedop",   "io_uring_enter, timed"
	};
	/* briefly, another one each time */
	const unsigned all = sizeof(names) / sizeof(names[0]), first = (unsigned)getpid() % all;
	unsigned n = torture_rounds(all, 1), kills = 0;
	static struct state state;
	struct victim v;

	board_open();
	start_group(&v, 0, BLOCKED_KINDS, "eintr");
	state_take(&v, &state);
	for (unsigned i = 0; i < board->kinds; i++) {
		struct blocked_slot *s = &board->slot[i];

		for (unsigned k = 0; k < n; k++)
			if (strcmp(s->name, names[(first + k) % all]) == 0 && !s->forbidden[0])
				kills += kill_in_wait(&v, s);
	}
	state_await_threads(&v, state.threads);
	/* one run takes away some two hundred regions at most */
	for (unsigned i = 0; i <= kills / 100; i++)
		run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
	torture_figure("killed at %u places in %u kinds of timed wait: 0 ended early", kills, n);
}

/* Keeps a CPU busy, in front of everything else there, for this long. Returns when it has begun. */
static pid_t start_hog(int cpu, uint64_t ns)
{
	const struct sched_param first = { .sched_priority = 50 };
	cpu_set_t one;
	int up[2];
	char c = 0;
	pid_t pid;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	cr_assert_eq(pipe(up), 0);
	pid = fork();
	if (pid == 0) {
		uint64_t end = now_ns() + ns;

		if (sched_setaffinity(0, sizeof(one), &one) ||
		    sched_setscheduler(0, SCHED_FIFO, &first) || write(up[1], &c, 1) != 1)
			_exit(1);
		while (now_ns() < end)
			;
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	close(up[1]);
	cr_assert_eq(read(up[0], &c, 1), 1, "the hog cannot run first (root only)");
	close(up[0]);
	return pid;
}

/* A thread that gets no CPU stops late: it is let go then, and borrowed after that. */
Test(blocked, a_thread_that_stops_late, .timeout = 300)
{
	cpu_set_t all, one;
	struct victim v;
	pid_t hog, tid;
	struct run r;
	unsigned waits;
	char text[16];
	int status;

	cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2 || !CPU_ISSET(1, &all))
		cr_skip_test("needs two CPUs");
	board_open();
	start_group(&v, 3, 1, NULL);
	tid = board->slot[3].tid;
	CPU_ZERO(&one);
	CPU_SET(1, &one);
	cr_assert_eq(sched_setaffinity(tid, sizeof(one), &one), 0);
	CPU_CLR(1, &all);
	/* heapmedic has the other CPUs */
	cr_assert_eq(sched_setaffinity(0, sizeof(all), &all), 0);
	snprintf(text, sizeof(text), "%d", tid);
	hog = start_hog(1, 800000000ull);
	run(&r, v.pid, "--thread", text, "--deadline", "20s", "trim", NULL);
	run_expect(&r, 0);
	cr_expect_lt(r.ns, 15000000000ull, "it stood in its stop until the deadline");
	run_free(&r);
	cr_assert_eq(waitpid(hog, &status, 0), hog);
	cr_assert_eq(status, 0);
	/* also while nothing else is to be done */
	hog = start_hog(1, 800000000ull);
	waits = board->slot[3].waits;
	run(&r, v.pid, "-e", "bt all", "-e", torture_full() ? "sleep 4s" : "sleep 2s", NULL);
	run_expect(&r, 0);
	run_free(&r);
	waits = board->slot[3].waits - waits;
	cr_expect_geq(waits, torture_rounds(4, 2), "of 300 ms each in %u s only %u have ended",
		      torture_rounds(4, 2), waits);
	cr_assert_eq(waitpid(hog, &status, 0), hog);
	victim_stop(&v);
}
