// SPDX-License-Identifier: GPL-3.0-or-later
/* serve: the metrics for Prometheus to fetch. Nothing can be changed through it. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/size.h"
#include "../inject/clock.h"
#include "context.h"
#include "http.h"
#include "listen.h"
#include "nap.h"
#include "scrape.h"
#include "signals.h"

#define LISTEN_AT "127.0.0.1:9748"
#define LEAST	  (5 * NS_PER_SEC)
#define LEAST_MIN (100 * NS_PER_MS)
#define TEXT	  "text/plain; charset=utf-8"

struct serve_args {
	struct listen_at at;
	uint64_t least;
	bool call;
};

struct serving {
	struct scrape *scrape;
	struct http *http;
	char where[LISTEN_TEXT];
};

/* ---- its words */

static int serve_args(const struct args *a, struct serve_args *s, struct diag *d)
{
	const char *at = a->opt[SERVE_LISTEN] ? a->opt[SERVE_LISTEN] : LISTEN_AT;
	int err = listen_parse(at, &s->at, d);

	s->least = LEAST;
	s->call = a->opt[SERVE_ASK] != NULL;
	if (!err && !s->at.loopback && !a->opt[SERVE_ANYWHERE])
		err = diag_fail(d, -EINVAL, HM_USAGE, "not-loopback",
				"add --listen-anywhere if all who can reach it may see the metrics",
				"--listen: others than this host can reach %.60s", at);
	if (!err && a->opt[SERVE_INTERVAL])
		err = time_parse_arg("--min-interval", a->opt[SERVE_INTERVAL], &s->least, d);
	if (!err && s->least < LEAST_MIN)
		err = diag_fail(d, -ERANGE, HM_USAGE, "bad-time", "100ms at least",
				"--min-interval: '%.60s' is too short", a->opt[SERVE_INTERVAL]);
	return err;
}

int check_serve(const struct args *a, struct diag *d)
{
	struct serve_args s;

	return serve_args(a, &s, d);
}

unsigned effect_serve(const struct args *a)
{
	return CMD_NO_PROCESS | CMD_SELECTS | (a->opt[SERVE_ASK] ? CMD_CALLS : CMD_PASSIVE);
}

/* ---- pages */

static int make_metrics(void *of, struct http_text *out)
{
	struct serving *x = of;

	return scrape_take(x->scrape, &out->text, &out->len);
}

static int make_fixed(const char *text, struct http_text *out)
{
	*out = (struct http_text){ .text = text, .len = strlen(text) };
	return 0;
}

static int make_index(void *of, struct http_text *out)
{
	(void)of;
	return make_fixed("<!DOCTYPE html>\n<html lang=\"en\"><head><title>heapmedic</title></head>"
			  "<body>\n<h1>heapmedic " HM_VERSION "</h1>\n"
			  "<p>Where the memory of processes is: <a href=\"/metrics\">/metrics</a> "
			  "for Prometheus.</p>\n<p>Nothing can be changed here.</p>\n"
			  "</body></html>\n",
			  out);
}

static int make_healthy(void *of, struct http_text *out)
{
	(void)of;
	return make_fixed("heapmedic serves\n", out);
}

static const struct http_page pages[] = {
	{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", make_metrics },
	{ "/", "text/html; charset=utf-8", make_index },
	{ "/-/healthy", TEXT, make_healthy },
};

/* ---- the run */

static void tell_begun(struct context *c, struct reply *r, const struct serving *x,
		       const struct serve_args *s)
{
	struct envelope e = { .command = "serve", .exit = HM_OK };

	if (!s->at.loopback)
		reply_warn(c, r, "not-loopback",
			   "whoever reaches %s can see the metrics; it has no password", x->where);
	if (!c->set.json) {
		context_note(c, "serving http://%s/metrics; Ctrl-C or SIGTERM ends it", x->where);
		return;
	}
	e.result = json_object();
	reply_member(r, e.result, "listen", json_string(x->where));
	clock_gettime(CLOCK_REALTIME, &e.time);
	if (sink_envelope(c->sink, &e))
		r->failed = true;
	json_decref(e.result);
	/* whoever started it waits for that line; an error shows at the end */
	(void)sink_flush(c->sink);
}

static void sum_up(struct context *c, struct reply *r, const struct serving *x, uint64_t cpu,
		   uint64_t ns)
{
	json_t *o;

	context_verbose(c, "serve ends: %llu requests, %llu looks, own CPU time %.3f %% of one CPU",
			(unsigned long long)http_requests(x->http),
			(unsigned long long)scrape_looks(x->scrape),
			ns ? (double)(clock_cpu() - cpu) * 100 / (double)ns : 0);
	if (!c->set.json)
		return;
	o = json_object();
	reply_member(r, o, "requests", json_u64(http_requests(x->http)));
	reply_member(r, o, "looks", json_u64(scrape_looks(x->scrape)));
	reply_set(r, "summary", o);
}

static void serve_until_told(const struct serving *x)
{
	while (nap_until(http_until(x->http), http_fd(x->http)) != NAP_CANCELLED)
		http_work(x->http);
}

/* Of what is wrong with a name, that nobody has it now is no error: that may change. */
static int check_words(const struct scrape_plan *plan, struct diag *d)
{
	for (size_t i = 0; i < plan->n; i++) {
		pid_t *pid = NULL;
		size_t n;

		if (targets_resolve(&plan->v[i], 1, &pid, &n, d) && d->exit != HM_GONE)
			return -EINVAL;
		free(pid);
	}
	diag_clear(d);
	return 0;
}

/* From the shell or a runbook: of the process that the session is about. */
static int whose(const struct context *c, struct selector *own, char pid[16],
		 struct scrape_plan *plan, struct diag *d)
{
	if (c->loaded)
		return diag_fail(d, -EINVAL, HM_USAGE, "needs-process",
				 "`metrics` prints those of a snapshot",
				 "serve needs the process itself, and this is a snapshot of it");
	if (c->selectors) {
		plan->v = c->selector;
		plan->n = c->selectors;
		return check_words(plan, d);
	}
	if (!c->pid)
		return diag_fail(d, -EINVAL, HM_USAGE, "no-target",
				 "name some with -n NAME, -p PID or -g CGROUP",
				 "this command needs a process");
	if (c->targets > 1)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage",
				 "heapmedic -n A -n B serve: one serves them all",
				 "with -e or -f serve is of one process, %zu are given",
				 c->targets);
	snprintf(pid, 16, "%d", (int)c->pid);
	*own = c->name ? (struct selector){ SELECT_NAME, c->name }
		       : (struct selector){ SELECT_PID, pid };
	plan->v = own;
	plan->n = 1;
	return 0;
}

static int serve(struct context *c, struct reply *r, struct serving *x, const struct serve_args *s,
		 struct diag *d)
{
	uint64_t cpu = clock_cpu(), began = clock_now();
	int fd, err = listen_open(&s->at, &fd, x->where, d);

	if (!err)
		err = http_open(fd, pages, sizeof(pages) / sizeof(pages[0]), x, &x->http, d);
	if (err)
		return err;
	tell_begun(c, r, x, s);
	serve_until_told(x);
	sum_up(c, r, x, cpu, clock_now() - began);
	http_close(x->http);
	return 0;
}

int cmd_serve(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct serving x = { 0 };
	struct scrape_plan plan = { 0 };
	struct serve_args s;
	struct selector own;
	enum hm_exit end;
	char pid[16];
	int err = serve_args(a, &s, d);

	if (!err)
		err = whose(c, &own, pid, &plan, d);
	if (err)
		return err;
	/* whatever the pages will be: nothing here changes a process */
	c->set.read_only = true;
	plan.least = s.least;
	plan.call = s.call;
	err = scrape_new(c, &plan, &x.scrape);
	if (err)
		return diag_internal(d, err, "the metrics");
	err = serve(c, r, &x, &s, d);
	end = scrape_free(x.scrape);
	if (!err && end != HM_OK)
		err = diag_fail(d, -EIO, end, "not-as-before", "its own error stands above",
				"a process could not be left as it was");
	return err;
}
