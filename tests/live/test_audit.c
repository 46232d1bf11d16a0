// SPDX-License-Identifier: GPL-3.0-or-later
/* --audit: each change is written down before and after it, and is not made where it cannot be. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

struct place {
	char dir[64], log[80], trace[80];
};

static void place_make(struct place *p)
{
	snprintf(p->dir, sizeof(p->dir), "/tmp/heapmedic-audit-XXXXXX");
	cr_assert_not_null(mkdtemp(p->dir));
	snprintf(p->log, sizeof(p->log), "%s/log", p->dir);
	snprintf(p->trace, sizeof(p->trace), "%s/trace", p->dir);
}

static void place_remove(const struct place *p)
{
	char remove[80];

	snprintf(remove, sizeof(remove), "rm -r %s", p->dir);
	cr_expect_eq(system(remove), 0);
}

static char *read_all(const char *path)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "re");
	size_t n;

	text[0] = '\0';
	if (!f)
		return text;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Line i of the log. */
static json_t *record(const char *text, size_t i)
{
	json_t *o;

	for (; i > 0; i--) {
		text = strchr(text, '\n');
		cr_assert_not_null(text, "there are fewer lines");
		text++;
	}
	o = json_loadb(text, strcspn(text, "\n"), 0, NULL);
	cr_assert_not_null(o, "%s", text);
	return o;
}

static size_t lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* How much a trim would return: the proof that none was made. */
static long long trimmable(pid_t pid)
{
	struct run r;
	long long n;
	json_t *o;

	run(&r, pid, "--json", "facts", "glibc.trimmable", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, pid, "facts");
	n = json_integer_value(json_object_get(json_at(o, "result"), "glibc.trimmable"));
	json_decref(o);
	run_free(&r);
	return n;
}

static void check_pair(const char *text, pid_t pid, const char *command, const char *result)
{
	json_t *before = record(text, 0), *after = record(text, 1);

	cr_expect_str_eq(json_text(before, "phase"), "before");
	cr_expect_str_eq(json_text(before, "result"), "");
	cr_expect_str_eq(json_text(after, "phase"), "after");
	cr_expect_str_eq(json_text(after, "result"), result);
	cr_expect_eq(json_int(before, "pid"), pid);
	cr_expect_eq(json_int(after, "pid"), pid);
	cr_expect_gt(json_int(before, "start_time"), 0);
	cr_expect_eq(json_int(before, "start_time"), json_int(after, "start_time"));
	cr_expect_str_eq(json_text(before, "comm"), "retained");
	cr_expect_str_eq(json_text(before, "command"), command);
	cr_expect_str_eq(json_text(after, "command"), command);
	cr_expect_geq(json_int(before, "uid"), 0);
	json_text(before, "user");
	cr_expect_eq(strlen(json_text(before, "time")), strlen("2026-01-31T12:00:00.123Z"));
	json_decref(before);
	json_decref(after);
}

Test(audit, a_change_has_two_records_and_a_look_none)
{
	static const char *const looks[] = {
		"check", "diagnose", "facts", "maps", "arenas", "stats"
	};
	struct place p = { 0 };
	struct stat st;
	struct victim v;

	place_make(&p);
	victim_start_named(&v, "retained", "1", NULL);
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		run_ok(v.pid, "--audit", p.log, looks[i], NULL);
	run_ok(v.pid, "--audit", p.log, "trim", "--dry-run", NULL);
	cr_expect_str_eq(read_all(p.log), "");
	run_ok(v.pid, "--audit", p.log, "trim", NULL);
	cr_expect_eq(lines(read_all(p.log)), 2, "%s", read_all(p.log));
	check_pair(read_all(p.log), v.pid, "trim", "ok");
	cr_assert_eq(stat(p.log, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	/* what was refused before anything was done leaves none either */
	run_ok(v.pid, "--audit", p.log, "mallopt", "M_ARENA_MAX", "8", NULL);
	cr_expect_eq(lines(read_all(p.log)), 4);
	victim_stop(&v);
	place_remove(&p);
}

/* What the kernel is asked, line by line; of heapmedic under strace with these options. */
static void run_traced(struct run *r, const struct place *p, pid_t pid, const char *inject)
{
	const char *program = getenv("HEAPMEDIC");
	char number[16];
	const char *args[] = { "-o",
			       p->trace,
			       "-y",
			       "-s",
			       "300",
			       "-e",
			       "trace=write,fsync,ptrace",
			       "-e",
			       inject,
			       program ? program : "./heapmedic",
			       "-p",
			       number,
			       "--audit",
			       p->log,
			       "trim",
			       NULL };
	const struct run_opts o = { .program = "strace", .may_not_trace = true };

	snprintf(number, sizeof(number), "%d", (int)pid);
	run_with(r, &o, args);
}

/* Where a line with both stands, from text on. */
static const char *line_with(const char *text, const char *call, const char *what)
{
	while (text && *text) {
		const char *end = strchrnul(text, '\n');

		if (strncmp(text, call, strlen(call)) == 0 &&
		    memmem(text, (size_t)(end - text), what, strlen(what)))
			return text;
		text = *end ? end + 1 : end;
	}
	return NULL;
}

Test(audit, is_on_the_disk_before_a_thread_is_touched)
{
	const char *text, *dir, *before, *synced, *seized, *after;
	struct place p = { 0 };
	struct victim v;
	struct run r;

	if (system("command -v strace >/dev/null") != 0)
		cr_skip_test("strace is missing");
	place_make(&p);
	victim_start_named(&v, "retained", "1", NULL);
	run_traced(&r, &p, v.pid, "inject=fsync:error=EIO:when=99");
	run_expect(&r, 0);
	text = read_all(p.trace);
	dir = line_with(text, "fsync(", p.dir);
	before = line_with(text, "write(", "before");
	cr_assert(dir && before && dir < before, "%s", text);
	synced = line_with(before, "fsync(", p.log);
	seized = line_with(text, "ptrace(PTRACE_SEIZE", "");
	cr_assert(synced && seized && synced < seized, "%s", text);
	after = line_with(seized, "write(", "after");
	cr_assert_not_null(after, "%s", text);
	cr_assert_not_null(line_with(after, "fsync(", p.log), "%s", text);
	run_free(&r);
	victim_stop(&v);
	place_remove(&p);
}

/* A disk that fails, when the directory, the first or the second record is written. */
Test(audit, no_record_no_change)
{
	static const struct {
		const char *inject;
		bool changed;
	} cases[] = {
		{ "inject=fsync:error=EIO:when=1", false },
		{ "inject=fsync:error=EIO:when=2", false },
		{ "inject=fsync:error=EIO:when=3", true },
	};

	if (system("command -v strace >/dev/null") != 0)
		cr_skip_test("strace is missing");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct place p = { 0 };
		struct victim v;
		struct run r;
		long long had;

		place_make(&p);
		victim_start_named(&v, "retained", "1", NULL);
		had = trimmable(v.pid);
		cr_assert_gt(had, 8000000);
		run_traced(&r, &p, v.pid, cases[i].inject);
		/* the change was made: that its record is missing is told, and no failure of it */
		cr_expect_eq(r.exit, cases[i].changed ? 0 : 1, "%s: %s", cases[i].inject, r.err);
		cr_expect_not_null(strstr(r.err, "Input/output error"), "%s", r.err);
		if (cases[i].changed)
			cr_expect_lt(trimmable(v.pid), had / 2);
		else
			cr_expect_eq(trimmable(v.pid), had);
		cr_expect_eq(strstr(r.err, "nothing was changed") != NULL, !cases[i].changed, "%s",
			     r.err);
		run_free(&r);
		victim_stop(&v);
		place_remove(&p);
	}
}

/* ---- syslog, in a /dev of our own */

static void mount_dev(void)
{
	cr_assert_eq(unshare(CLONE_NEWNS), 0, "%s", strerror(errno));
	cr_assert_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0, "%s", strerror(errno));
	cr_assert_eq(mount("none", "/dev", "tmpfs", 0, "mode=755"), 0, "%s", strerror(errno));
	cr_assert_eq(mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)), 0, "%s", strerror(errno));
}

/* One datagram. */
static char *receive(int fd)
{
	static char text[8192];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	cr_assert_gt(poll(&p, 1, 10000), 0, "nothing came to /dev/log");
	n = recv(fd, text, sizeof(text) - 1, 0);
	cr_assert_gt(n, 0);
	text[n] = '\0';
	return text;
}

Test(audit, syslog)
{
	const struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	struct victim v;
	struct run r;
	char *text;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("only root can have a /dev of its own");
	victim_start_named(&v, "retained", "1", NULL);
	mount_dev();
	/* nobody listens */
	run(&r, v.pid, "--audit", "syslog", "trim", NULL);
	run_expect(&r, 1);
	cr_expect_not_null(strstr(r.err, "nothing was changed"), "%s", r.err);
	run_free(&r);
	cr_expect_gt(trimmable(v.pid), 8000000);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0, "%s",
		     strerror(errno));
	run_ok(v.pid, "--audit", "syslog", "trim", NULL);
	cr_expect_lt(trimmable(v.pid), 8000000);
	text = receive(fd);
	/* authpriv.notice: 10 * 8 + 5 (syslog(3)) */
	cr_expect_eq(strncmp(text, "<85>heapmedic[", 14), 0, "%s", text);
	cr_expect_not_null(strstr(text, "\"phase\":\"before\""), "%s", text);
	cr_expect_not_null(strstr(text, "\"command\":\"trim\""), "%s", text);
	text = receive(fd);
	cr_expect_not_null(strstr(text, "\"phase\":\"after\",\"result\":\"ok\""), "%s", text);
	close(fd);
	victim_stop(&v);
}
