// SPDX-License-Identifier: GPL-3.0-or-later
/* `metrics`, as Prometheus would read it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

/* The value of a sample, -1 where there is none. */
static double sample(const char *text, const char *name, pid_t pid)
{
	char begin[160];
	const char *at;

	snprintf(begin, sizeof(begin), "\n%s{pid=\"%d\",", name, (int)pid);
	at = strstr(text, begin);
	at = at ? strstr(at, "} ") : NULL;
	return at ? strtod(at + 2, NULL) : -1;
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		n++;
		text += strlen(part);
	}
	return n;
}

/* Every line is a comment of a family that follows, or a sample of it. */
static void check_form(const char *text)
{
	char family[80] = "";

	for (const char *line = text; *line; line = strchrnul(line, '\n') + 1) {
		char name[80] = "", type[16] = "";
		double v;

		cr_assert_not_null(strchr(line, '\n'), "the last line has no end");
		if (sscanf(line, "# TYPE %79s %15s", name, type) == 2) {
			cr_assert(!strcmp(type, "gauge") || !strcmp(type, "counter"), "%s", line);
			snprintf(family, sizeof(family), "%s", name);
		} else if (line[0] != '#') {
			cr_assert_eq(sscanf(line, "%79[a-z0-9_]{%*[^}]} %lf", name, &v), 2, "%s",
				     line);
			cr_assert_str_eq(name, family);
		}
	}
}

Test(metrics, of_one_process)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "retained", "1", NULL);
	run(&r, v.pid, "metrics", NULL);
	run_expect(&r, 0);
	check_form(r.out);
	cr_expect_gt(sample(r.out, "heapmedic_rss", v.pid), 16e6);
	cr_expect_gt(sample(r.out, "heapmedic_glibc_trimmable", v.pid), 8e6);
	cr_expect_eq(sample(r.out, "heapmedic_jemalloc_allocated", v.pid), -1);
	cr_expect_gt(sample(r.out, "heapmedic_minflt_total", v.pid), 1000);
	run_free(&r);
	victim_stop(&v);
}

/* One text, in which no family comes twice: what comes twice Prometheus refuses as a whole. */
Test(metrics, of_several_processes)
{
	const struct run_opts none = { 0 };
	char a[16], b[16];
	const char *args[] = { "--json", "-p", a, "-p", b, "metrics", NULL };
	struct victim v, w;
	struct run r;

	victim_start_named(&v, "retained", "1", NULL);
	victim_start_named(&w, "single", NULL, NULL);
	snprintf(a, sizeof(a), "%d", (int)v.pid);
	snprintf(b, sizeof(b), "%d", (int)w.pid);
	run_with(&r, &none, args);
	run_expect(&r, 0);
	check_form(r.out);
	cr_expect_eq(count(r.out, "# TYPE heapmedic_rss gauge\n"), 1);
	cr_expect_eq(count(r.out, "\nheapmedic_rss{"), 2);
	cr_expect_gt(sample(r.out, "heapmedic_rss", v.pid), 16e6);
	cr_expect_gt(sample(r.out, "heapmedic_rss", w.pid), 0);
	run_free(&r);
	victim_stop(&v);
	victim_stop(&w);
}

/* However it is asked for, what several processes have to say is one text that can be read. */
Test(metrics, of_several_processes_otherwise)
{
	const struct run_opts none = { 0 };
	char a[16], b[16];
	const char *args[][11] = {
		{ "-p", a, "-p", b, "-e", "metrics", NULL },
		{ "-p", a, "-p", b, "-e", "metrics", "-e", "metrics", NULL },
		{ "-p", a, "-p", b, "when", "rss > 1", "then", "metrics", NULL },
	};
	struct victim v, w;

	victim_start_named(&v, "retained", "1", NULL);
	victim_start_named(&w, "single", NULL, NULL);
	snprintf(a, sizeof(a), "%d", (int)v.pid);
	snprintf(b, sizeof(b), "%d", (int)w.pid);
	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
		struct run r;

		run_with(&r, &none, args[i]);
		run_expect(&r, 0);
		check_form(r.out);
		cr_expect_eq(count(r.out, "\nheapmedic_rss{"), 2, "%s", r.out);
		cr_expect_eq(count(r.out, "=="), 0, "%s", r.out);
		run_free(&r);
	}
	victim_stop(&v);
	victim_stop(&w);
}

/* ---- into a file */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fclose(f), 0);
}

/* In a buffer of its own. */
static const char *read_file(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");

	cr_assert_not_null(f, "%s", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	cr_assert_eq(fclose(f), 0);
	return text;
}

/* The collector runs as another user, at any time, and takes what it finds for the truth. */
Test(metrics, into_a_file)
{
	const struct run_opts none = { 0 };
	char dir[] = "/tmp/heapmedic-metrics-XXXXXX", path[80], a[16], b[16];
	const char *two[] = { "-p", a, "-p", b, "metrics", "--output", path, NULL };
	struct victim v, w;
	struct stat st;
	struct run r;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.prom", dir);
	victim_start_named(&v, "retained", "1", NULL);
	victim_start_named(&w, "single", NULL, NULL);
	run_ok(v.pid, "--dry-run", "metrics", "--output", path, NULL);
	cr_expect_neq(access(path, F_OK), 0);
	run(&r, v.pid, "metrics", "--output", path, NULL);
	run_expect(&r, 0);
	cr_expect_str_eq(r.out, "");
	run_free(&r);
	check_form(read_file(path));
	cr_expect_gt(sample(read_file(path), "heapmedic_rss", v.pid), 16e6);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0644);
	/* over what it has written before, of several at once */
	snprintf(a, sizeof(a), "%d", (int)v.pid);
	snprintf(b, sizeof(b), "%d", (int)w.pid);
	run_with(&r, &none, two);
	run_expect(&r, 0);
	run_free(&r);
	cr_expect_gt(sample(read_file(path), "heapmedic_rss", w.pid), 0);
	cr_expect_eq(count(read_file(path), "\nheapmedic_rss{"), 2);
	/* of a process that is gone nothing is known: not even that it has no memory */
	victim_stop(&w);
	run(&r, w.pid, "metrics", "--output", path, NULL);
	run_expect(&r, 3);
	run_free(&r);
	cr_expect_gt(sample(read_file(path), "heapmedic_rss", w.pid), 0);
	victim_stop(&v);
	cr_expect_eq(unlink(path), 0);
	/* nothing but the one file */
	cr_expect_eq(rmdir(dir), 0);
}

Test(metrics, nobody_elses_file)
{
	const struct run_opts none = { 0 };
	char dir[] = "/tmp/heapmedic-metrics-XXXXXX", path[80], a[16], b[16];
	char one[100], other[100];
	const char *two[] = { "-p", a, "-p", b, "-e", one, "-e", other, NULL };
	struct victim v, w;
	struct run r;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.prom", dir);
	victim_start_named(&v, "single", NULL, NULL);
	victim_start_named(&w, "single", NULL, NULL);
	write_file(path, "keep\n");
	run(&r, v.pid, "metrics", "--output", path, NULL);
	run_expect(&r, 2);
	run_free(&r);
	cr_expect_str_eq(read_file(path), "keep\n");
	run_ok(v.pid, "metrics", "--output", path, "--force", NULL);
	cr_expect_gt(sample(read_file(path), "heapmedic_rss", v.pid), 0);
	snprintf(a, sizeof(a), "%d", (int)v.pid);
	snprintf(b, sizeof(b), "%d", (int)w.pid);
	snprintf(one, sizeof(one), "metrics --output %s", path);
	snprintf(other, sizeof(other), "metrics --output %s.2", path);
	run_with(&r, &none, two);
	cr_expect_eq(r.exit, 2, "%d: %s", r.exit, r.err);
	cr_expect_not_null(strstr(r.err, "name one file"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
	victim_stop(&w);
	cr_expect_eq(unlink(path), 0);
	cr_expect_eq(rmdir(dir), 0);
}

/* So that whoever reads it later can tell how old it is. */
Test(metrics, it_says_when_it_was)
{
	struct victim v;
	struct run r;
	double at, now;

	victim_start_named(&v, "single", NULL, NULL);
	run(&r, v.pid, "metrics", NULL);
	run_expect(&r, 0);
	now = (double)time(NULL);
	at = sample(r.out, "heapmedic_look_timestamp_seconds", v.pid);
	cr_expect(at > now - 120 && at <= now + 1, "%f, now %f", at, now);
	run_free(&r);
	victim_stop(&v);
}
