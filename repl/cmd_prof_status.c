// SPDX-License-Identifier: GPL-3.0-or-later
/* prof status: what there is, and what is in force. */
#include "prof.h"

#include <inttypes.h>
#include <unistd.h>

#include "../agent/jemalloc_prof.h"
#include "context.h"

#define LABEL 17 /* columns before what is said */

enum since { SINCE_UNKNOWN, SINCE_START, SINCE_SWITCH };

static bool start_of(const struct process *p, struct timespec *at)
{
	struct timespec up;
	long hz = sysconf(_SC_CLK_TCK);

	if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &up) || clock_gettime(CLOCK_REALTIME, at))
		return false;
	at->tv_sec -= up.tv_sec - (time_t)(p->t.start_time / (uint64_t)hz);
	return true;
}

/* As far as can be seen: each reset that changes the rate shows, nothing else changes it
 * (prof_reset_ctl). */
static bool is_as_at_first(const struct prof_state *s)
{
	return s->known[PROF_ACTIVE_AT_FIRST] &&
	       prof_is(s, PROF_ACTIVE_AT_FIRST) == prof_is(s, PROF_ACTIVE) &&
	       s->known[PROF_LG_SAMPLE_AT_FIRST] &&
	       s->value[PROF_LG_SAMPLE_AT_FIRST] == s->value[PROF_LG_SAMPLE];
}

/* jemalloc keeps no time of it: what this session has not switched or reset is known only as far as
 * it is as it was at the start. */
static enum since since(const struct context *c, const struct prof_state *s, struct timespec *at)
{
	bool active = prof_is(s, PROF_ACTIVE);

	if (c->prof.known && c->prof.on == active) {
		*at = c->prof.at;
		return SINCE_SWITCH;
	}
	if (c->prof.known || !prof_is(s, PROF_ENABLED) || !is_as_at_first(s))
		return SINCE_UNKNOWN;
	return start_of(c->process, at) ? SINCE_START : SINCE_UNKNOWN;
}

static const char *utc(const struct timespec *at, char buf[32])
{
	struct tm tm;

	buf[0] = '\0';
	if (gmtime_r(&at->tv_sec, &tm))
		strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf;
}

static json_t *known_bool(const struct prof_state *s, enum prof_name n)
{
	return s->known[n] ? json_boolean(s->value[n]) : json_null();
}

static void status_json(const struct context *c, struct reply *r, const struct prof_state *s,
			const char *line)
{
	static const char *const from[] = { [SINCE_START] = "start", [SINCE_SWITCH] = "switch" };
	uint64_t bytes = prof_sample_bytes(s);
	const char *unwinder = prof_unwinder(s);
	struct timespec at = { 0 };
	enum since known = since(c, s, &at);
	char time[32];

	reply_set(r, "compiled", json_boolean(prof_is(s, PROF_COMPILED)));
	reply_set(r, "enabled", json_boolean(prof_is(s, PROF_ENABLED)));
	reply_set(r, "active", json_boolean(prof_is(s, PROF_ACTIVE)));
	reply_set(r, "lg_sample", bytes ? json_u64(s->value[PROF_LG_SAMPLE]) : json_null());
	reply_set(r, "sample_bytes", bytes ? json_u64(bytes) : json_null());
	reply_set(r, "since", known ? json_string(utc(&at, time)) : json_null());
	reply_set(r, "since_from", known ? json_string(from[known]) : json_null());
	reply_set(r, "unwinder", unwinder ? json_string(unwinder) : json_null());
	reply_set(r, "new_threads", known_bool(s, PROF_NEW_THREADS));
	reply_set(r, "accum", known_bool(s, PROF_ACCUM));
	reply_set(r, "gdump", known_bool(s, PROF_GDUMP));
	reply_set(r, "final", known_bool(s, PROF_FINAL));
	reply_set(r, "interval_bytes",
		  s->known[PROF_INTERVAL] ? json_u64(s->value[PROF_INTERVAL]) : json_null());
	reply_set(r, "environment", line[0] ? json_string(line) : json_null());
}

static void since_text(const struct context *c, const struct prof_state *s)
{
	struct timespec at = { 0 };
	char time[32], text[128];
	const char *what;

	switch (since(c, s, &at)) {
	case SINCE_SWITCH:
		what = "when this session has switched or reset it";
		break;
	case SINCE_START:
		what = "the start of the process, as far as can be seen";
		break;
	default:
		fprintf(c->sink->out,
			"since            unknown: it was switched or reset at run time\n");
		return;
	}
	snprintf(text, sizeof(text), "since            %s, %s", utc(&at, time), what);
	sink_words(c->sink, LABEL, text);
}

static void dumps_text(const struct context *c, const struct prof_state *s)
{
	char size[SIZE_TEXT], every[64] = "", text[192];
	uint64_t bytes = s->known[PROF_INTERVAL] ? s->value[PROF_INTERVAL] : 0;

	if (bytes)
		snprintf(every, sizeof(every), " one per %s allocated",
			 text_size(size, bytes, c->set.bytes));
	if (!bytes && !prof_is(s, PROF_GDUMP) && !prof_is(s, PROF_FINAL))
		return;
	snprintf(text, sizeof(text), "writes by itself%s%s%s", every,
		 prof_is(s, PROF_GDUMP) ? " at each new maximum" : "",
		 prof_is(s, PROF_FINAL) ? " at its end" : "");
	sink_words(c->sink, LABEL, text);
}

static void status_text(const struct context *c, const struct prof_state *s, const char *line)
{
	FILE *out = c->sink->out;
	char size[SIZE_TEXT];
	const char *unwinder = prof_unwinder(s);

	fprintf(out, "compiled in      %s%s%s\n", unwinder ? "yes" : "no",
		unwinder ? ", stacks by " : "", unwinder ? unwinder : "");
	if (unwinder && !prof_is(s, PROF_ENABLED)) {
		fputs("enabled at start no: it cannot be switched on now\n", out);
		fprintf(out, "at the next one  %s\n", line);
	}
	if (!prof_is(s, PROF_ENABLED))
		return;
	fprintf(out, "enabled at start yes\nactive           %s\n",
		prof_is(s, PROF_ACTIVE) ? "yes" : "no");
	since_text(c, s);
	fprintf(out, "sample rate      one per %s (lg_sample %" PRIu64 ")\n",
		text_size(size, prof_sample_bytes(s), c->set.bytes), s->value[PROF_LG_SAMPLE]);
	fprintf(out, "new threads      %s\n",
		prof_is(s, PROF_NEW_THREADS) ? "sampled" : "not sampled");
	fprintf(out, "keeps            %s\n",
		prof_is(s, PROF_ACCUM) ? "what is live and all that ever was" : "what is live");
	dumps_text(c, s);
}

int prof_status(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct prof_state s;
	char line[300] = "";
	int err = prof_jemalloc(c, r, &jemalloc, d);

	(void)a;
	if (!err)
		err = jemalloc_prof_state(c->process, jemalloc, &s, d);
	if (err)
		return err;
	if (prof_is(&s, PROF_COMPILED) && !prof_is(&s, PROF_ENABLED))
		jemalloc_prof_line(c->process, jemalloc, line, sizeof(line));
	if (c->set.json)
		status_json(c, r, &s, line);
	else
		status_text(c, &s, line);
	return 0;
}
