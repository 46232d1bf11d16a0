// SPDX-License-Identifier: GPL-3.0-or-later
#include "subject.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../live/program.h"

/* Looking costs as much as a session: not after each. */
#define LOOK_EVERY 10
/* One run in so many may find no safe point. */
#define REFUSED_ONE_IN 50

const char *const subject_glibc[] = {
	"trim", "stats", "info", "trim", "info --raw", "stats",	  "trim", "check",
	"trim", "info",	 "bt",	 "trim", "stats",      "threads", NULL,
};

/* Field 22 of /proc/PID/stat: who has the same is the same process. */
static void read_start_time(pid_t pid, char *out, size_t size)
{
	char path[64], line[1024] = "";
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	cr_assert(f && fgets(line, sizeof(line), f), "process %d is gone", pid);
	fclose(f);
	at = strrchr(line, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	cr_assert_not_null(at);
	snprintf(out, size, "%.*s", (int)strcspn(at + 1, " "), at + 1);
}

void subject_begin(struct subject *s)
{
	s->sessions = s->refused = 0;
	s->longest_ns = 0;
	read_start_time(s->v.pid, s->start_time, sizeof(s->start_time));
	state_take(&s->v, &s->before);
}

static void is_as_before(struct subject *s)
{
	char start[32], c;

	read_start_time(s->v.pid, start, sizeof(start));
	cr_assert_str_eq(start, s->start_time, "%s is another process", s->name);
	c = proc_state(s->v.pid);
	cr_assert(c == 'R' || c == 'S' || c == 'D', "%s is in state '%c'", s->name, c ? c : '-');
}

/* Nothing was said, or only of when jemalloc's statistics are. */
static bool is_quiet(const char *err)
{
	const char *end = strchr(err, '\n');

	return !err[0] || (strncmp(err, "heapmedic: statistics of ", 25) == 0 && end && !end[1]);
}

void subject_session(struct subject *s)
{
	const char *args[RUN_ARGS] = { "-p" };
	const struct run_opts o = { 0 };
	char words[256], pid[16];
	size_t commands = 0, n = 2;
	struct run r;

	while (s->commands[commands])
		commands++;
	snprintf(pid, sizeof(pid), "%d", s->v.pid);
	args[1] = pid;
	snprintf(words, sizeof(words), "%s", s->commands[s->sessions % commands]);
	for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		args[n++] = w;
	args[n] = NULL;
	run_with(&r, &o, args);
	if (r.exit == 6) {
		s->refused++;
		snprintf(s->reason, sizeof(s->reason), "%.*s", (int)strcspn(r.err, "\n"), r.err);
	} else {
		cr_assert(r.exit == 0 && is_quiet(r.err), "%s with %s: exit %d (signal %d): %s",
			  args[2], s->name, r.exit, r.sig, r.err);
	}
	if (r.ns > s->longest_ns) {
		s->longest_ns = r.ns;
		s->longest = s->commands[s->sessions % commands];
	}
	run_free(&r);
	is_as_before(s);
	if (++s->sessions % LOOK_EVERY == 0)
		state_same(&s->v, &s->before, s->freedom);
}

void subject_end(struct subject *s)
{
	is_as_before(s);
	state_same(&s->v, &s->before, s->freedom);
	cr_assert_leq(s->refused, 1 + s->sessions / REFUSED_ONE_IN, "%u of %u with %s: %s",
		      s->refused, s->sessions, s->name, s->reason);
}

void subject_many(struct subject *s, size_t subjects, unsigned n)
{
	for (size_t i = 0; i < subjects; i++)
		subject_begin(&s[i]);
	for (unsigned i = 0; i < n; i++)
		subject_session(&s[i % subjects]);
	for (size_t i = 0; i < subjects; i++)
		subject_end(&s[i]);
}

void subject_sum(const struct subject *s, size_t n, struct subject *sum)
{
	sum->sessions = sum->refused = 0;
	sum->longest_ns = 0;
	for (size_t i = 0; i < n; i++) {
		sum->sessions += s[i].sessions;
		sum->refused += s[i].refused;
		if (s[i].refused)
			snprintf(sum->reason, sizeof(sum->reason), "%s", s[i].reason);
		if (s[i].longest_ns > sum->longest_ns) {
			sum->longest_ns = s[i].longest_ns;
			sum->longest = s[i].longest;
		}
	}
}

size_t process_children(pid_t pid, pid_t *child, size_t max)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	cr_assert_not_null(dir);
	while (n < max && (e = readdir(dir))) {
		pid_t p = (pid_t)strtol(e->d_name, NULL, 10);

		if (p > 0 && proc_number(p, "status", "PPid:") == pid)
			child[n++] = p;
	}
	closedir(dir);
	return n;
}

void process_command(pid_t pid, char *buf, size_t size)
{
	char path[64];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(buf, 1, size - 1, f);
		fclose(f);
	}
	buf[n] = '\0';
	for (size_t i = 0; i + 1 < n; i++)
		if (!buf[i])
			buf[i] = ' ';
}

long log_size(const char *path)
{
	FILE *f = fopen(path, "re");
	long n;

	cr_assert_not_null(f, "there is no log %s", path);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	fclose(f);
	return n;
}

void log_is_harmless(const char *path, long from)
{
	static const char *const harm[] = { "error",	"fatal",  "panic", "warn",
					    "crash",	"signal", "abort", "alert",
					    "terminat", "[crit",  "emerg", "bug" };
	char line[1024];
	FILE *f = fopen(path, "re");

	cr_assert(f && fseek(f, from, SEEK_SET) == 0, "there is no log %s", path);
	while (fgets(line, sizeof(line), f)) {
		char small[sizeof(line)];
		size_t i;

		for (i = 0; line[i]; i++)
			small[i] = (char)tolower((unsigned char)line[i]);
		small[i] = '\0';
		for (i = 0; i < sizeof(harm) / sizeof(harm[0]); i++)
			cr_assert_null(strstr(small, harm[i]), "in its log: %s", line);
	}
	fclose(f);
}
