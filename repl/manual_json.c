// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdbool.h>
#include <string.h>

#include "exits.h"
#include "manual.h"
#include "roff.h"
#include "schema.h"

static const char about[] =
	"With --json heapmedic prints one object in one line for each command and process; "
	"`watch`,\n`guard` and `serve` print one for each interval, decision, or at their begin "
	"and "
	"end.\n"
	"Its envelope is the same for all commands; what stands in `result` is told below, command "
	"by\ncommand.\n"
	"Commands that steer a run (`require`, `when`, `set`, `echo`, `sleep`, `source`, `help`, "
	"`quit`,\n`on-error`) print none unless they fail, and `metrics` is text in any case.\n"
	"\n"
	"Keys that are here stay; new ones may come, so that a reader passes over those that it "
	"does\nnot know.\n"
	"What is not known is null, never 0.\n"
	"Strings of the process are escaped, so that no byte of them is one that a terminal obeys; "
	"what\nis not UTF-8 is U+FFFD.\n";

static const char types[] =
	"bytes, count, us (microseconds), ms and index are integers; seconds, number and fraction "
	"may\nhave a point.\n"
	"text, word (one of a few), address (hexadecimal, with 0x) and time (UTC, as in\n"
	"2026-01-31T12:00:00.123Z) are strings.\n"
	"`or null` says that it may be null, `sometimes` that it may be missing.\n"
	"`rows[].owner` is the member `owner` of each object of the list `rows`; `*` is any "
	"name.\n";

static const char audit[] =
	"--audit writes lines of JSON with `time`, `uid` and `user` of who runs heapmedic (by the "
	"login,\nwhere it is known), `pid`, `start_time` (clock ticks after boot, see proc(5)) and "
	"`comm` of the\nprocess, `command`, `phase` (before or after) and `result` (empty before; "
	"then ok, or the\nerror).\n"
	"Looking writes none.\n"
	"Where the record cannot be written the change is not made.\n";

static void put_key(const struct schema_key *key, void *arg)
{
	FILE *out = arg;
	bool sometimes = key->type[0] == '~';
	const char *type = key->type + sometimes;
	size_t n = strcspn(type, "?");

	fputs(".TP\n", out);
	roff_bold(out, key->key);
	fprintf(out, " (%.*s%s%s)\n", (int)n, type, type[n] ? " or null" : "",
		sometimes ? ", sometimes" : "");
	roff_inline(out, *key->meaning ? key->meaning : "as it says");
	putc('\n', out);
}

static void put_exits(FILE *out)
{
	for (int code = HM_OK; code <= HM_INTERNAL; code++) {
		char text[8];

		snprintf(text, sizeof(text), "%d", code);
		roff_term(out, text, NULL, exit_meaning((enum hm_exit)code));
	}
}

void manual_json(FILE *out, const char *date)
{
	const char *of;

	roff_title(out, "heapmedic-json", "5", date);
	roff_section(out, "NAME");
	fputs("heapmedic\\-json \\- what heapmedic \\-\\-json prints\n", out);
	roff_section(out, "DESCRIPTION");
	roff_lead(out, about);
	roff_text(out, types);
	roff_section(out, "ENVELOPE");
	schema_each("*", put_key, out);
	roff_section(out, "RESULTS");
	for (size_t i = 0; (of = schema_of(i)); i++) {
		if (strcmp(of, "*") == 0)
			continue;
		roff_subsection(out, of);
		schema_each(of, put_key, out);
	}
	roff_section(out, "EXIT STATUS");
	roff_lead(out, "The values of `exit`; of several processes the program ends with the "
		       "highest.\n");
	put_exits(out);
	roff_section(out, "AUDIT RECORDS");
	roff_lead(out, audit);
	roff_section(out, "EXAMPLE");
	roff_lead(out, "What a trim has returned:\n");
	roff_example(out, "heapmedic --json -n redis-server trim | jq .result.returned_bytes");
	roff_section(out, "SEE ALSO");
	fputs(".BR heapmedic (1),\n.BR jq (1),\n.BR proc (5)\n", out);
}

struct table {
	FILE *out;
	const char *of;
};

static void put_row(const struct schema_key *key, void *arg)
{
	struct table *t = arg;

	fprintf(t->out, "%s\t%s\t%s\n", t->of, key->key, key->type);
}

void schema_table(FILE *out)
{
	struct table t = { .out = out };

	for (size_t i = 0; (t.of = schema_of(i)); i++)
		schema_each(t.of, put_row, &t);
}
