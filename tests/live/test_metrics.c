// SPDX-License-Identifier: GPL-3.0-or-later
/* `metrics`, as Prometheus would read it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
