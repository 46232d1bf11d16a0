// SPDX-License-Identifier: GPL-3.0-or-later
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_AT	 "/tmp/heapmedic-server-XXXXXX"
#define READY_NS (60 * 1000000000ull)

void service_needs(const char *program, const char *package)
{
	char line[256];

	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	snprintf(line, sizeof(line), "command -v %s >/dev/null 2>&1", program);
	if (system(line) != 0)
		cr_skip_test("%s is missing: install %s", program, package);
}

void service_dir(struct service *s, const char *user, const char *package)
{
	const struct passwd *pw = user ? getpwnam(user) : NULL;

	if (user && !pw)
		cr_skip_test("the user %s is missing: install %s", user, package);
	memset(s, 0, sizeof(*s));
	snprintf(s->dir, sizeof(s->dir), "%s", DIR_AT);
	cr_assert_not_null(mkdtemp(s->dir));
	cr_assert_eq(chmod(s->dir, 0755), 0);
	s->user = geteuid() == 0 ? user : NULL;
	if (s->user)
		cr_assert_eq(chown(s->dir, pw->pw_uid, pw->pw_gid), 0);
	snprintf(s->log, sizeof(s->log), "%s/log", s->dir);
	snprintf(s->socket, sizeof(s->socket), "%s/socket", s->dir);
}

/*
 * The words in front of the program's own. A change of user ends the wish to die with the parent,
 * so setpriv(1) makes it anew.
 */
struct launch {
	struct victim_plan plan;
	char script[256], uid[64], gid[64];
};

static void prepare(const struct service *s, struct launch *l, const char *const *argv,
		    const char *input)
{
	size_t n = 0;

	memset(l, 0, sizeof(*l));
	l->plan.silent = true;
	snprintf(l->script, sizeof(l->script), "cd %s && exec \"$@\" <%s >>%s 2>&1", s->dir,
		 input ? input : "/dev/null", s->log);
	l->plan.argv[n++] = "sh";
	l->plan.argv[n++] = "-c";
	l->plan.argv[n++] = l->script;
	l->plan.argv[n++] = "sh";
	if (s->user) {
		snprintf(l->uid, sizeof(l->uid), "--reuid=%s", s->user);
		snprintf(l->gid, sizeof(l->gid), "--regid=%s", s->user);
		l->plan.argv[n++] = "setpriv";
		l->plan.argv[n++] = l->uid;
		l->plan.argv[n++] = l->gid;
		l->plan.argv[n++] = "--clear-groups";
		l->plan.argv[n++] = "--pdeathsig=KILL";
	}
	for (size_t i = 0; argv[i]; i++) {
		cr_assert_lt(n + 1, sizeof(l->plan.argv) / sizeof(l->plan.argv[0]));
		l->plan.argv[n++] = argv[i];
	}
}

void service_run(const struct service *s, const char *const *argv, const char *input)
{
	struct launch l;
	struct victim v;

	prepare(s, &l, argv, input);
	victim_start(&v, &l.plan);
	victim_wait_exit(&v, 0);
}

void service_start(struct service *s, const char *const *argv)
{
	struct launch l;

	prepare(s, &l, argv, NULL);
	victim_start(&s->v, &l.plan);
}

void service_await(const struct service *s, const char *text)
{
	for (uint64_t end = now_ns() + READY_NS; now_ns() < end; sleep_ns(10000000)) {
		char line[1024];
		FILE *f = fopen(s->log, "re");
		bool found = false;

		while (f && !found && fgets(line, sizeof(line), f))
			found = strstr(line, text) != NULL;
		if (f)
			fclose(f);
		if (found)
			return;
	}
	cr_assert_fail("%s never says \"%s\"", s->log, text);
}

void service_stop(struct service *s, int sig)
{
	char line[128];

	cr_assert_eq(kill(s->v.pid, sig), 0);
	victim_wait_exit(&s->v, 0);
	snprintf(line, sizeof(line), "rm -rf '%s'", s->dir);
	cr_assert_eq(system(line), 0);
}

const char *service_file(const struct service *s, const char *name, const char *text)
{
	static char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "we");
	cr_assert(f && fputs(text, f) >= 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(fclose(f), 0);
	return path;
}
