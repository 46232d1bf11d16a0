// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/process.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"

static const struct module *program(const struct process *p)
{
	for (size_t i = 0; i < p->mods.n; i++)
		if (p->mods.v[i].is_main)
			return &p->mods.v[i];
	return NULL;
}

static struct process *open_child(pid_t pid)
{
	struct process *p = NULL;
	struct diag d = { 0 };

	cr_assert_eq(process_open(pid, NULL, &p, &d), 0, "%s", d.text);
	cr_assert_gt(p->mods.n, 0);
	return p;
}

static void close_child(struct process *p, pid_t pid)
{
	struct diag d = { 0 };

	cr_assert_eq(process_close(p, &d, NULL, 0), 0, "%s", d.text);
	child_end(pid);
}

static void become_sleep(void *go)
{
	while (!*(volatile uint32_t *)go)
		poll(NULL, 0, 1);
	execlp("sleep", "sleep", "1000", (char *)NULL);
}

/* Same pid, same start time, another program at other addresses. */
Test(process, refresh_sees_another_program)
{
	uint32_t *go = child_shared(sizeof(*go));
	pid_t pid = child_start(become_sleep, go);
	struct process *p = open_child(pid);
	uint64_t before = program(p)->start;
	struct diag d = { 0 };

	*go = 1;
	cr_assert(child_reach_call(pid, pid, SYS_clock_nanosleep));
	cr_assert_eq(process_refresh(p, &d), 0, "%s", d.text);
	cr_assert_not_null(program(p));
	cr_assert_neq(program(p)->start, before);
	cr_assert_not_null(maps_find(&p->maps, program(p)->start));
	close_child(p, pid);
}

Test(process, refresh_keeps_modules_that_stay)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct process *p = open_child(pid);
	const struct module *before = p->mods.v;
	struct diag d = { 0 };

	cr_assert_eq(process_refresh(p, &d), 0, "%s", d.text);
	cr_assert_eq(p->mods.v, before);
	close_child(p, pid);
}

Test(process, refresh_forgets_that_it_was_stopped)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct process *p;
	struct diag d = { 0 };

	cr_assert_eq(kill(pid, SIGSTOP), 0);
	cr_assert(child_reach(pid, pid, 'T'));
	p = open_child(pid);
	cr_assert_not(p->pre.injectable);
	cr_assert_str_eq(p->pre.cause.code, "stopped");
	cr_assert_eq(kill(pid, SIGCONT), 0);
	cr_assert(child_reach(pid, pid, 'S'));
	cr_assert_eq(process_refresh(p, &d), 0, "%s", d.text);
	cr_assert(p->pre.injectable, "%s", p->pre.cause.text);
	close_child(p, pid);
}
