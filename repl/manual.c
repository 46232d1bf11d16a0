// SPDX-License-Identifier: GPL-3.0-or-later
#include "manual.h"

#include <string.h>

#include "../agent/facts.h"
#include "../agent/glibc.h"
#include "command.h"
#include "exits.h"
#include "roff.h"

static const char about[] =
	"heapmedic attaches to a running Linux process, says where its memory is and why, and "
	"gives\nunused memory back: without a restart, and without the process noticing.\n"
	"\n"
	"Allocator calls are made on a small thread of its own inside the process; to start that, "
	"one\nthread of the program is held for a moment, a fraction of a millisecond as a rule.\n"
	"Which commands do so is said of each below.\n"
	"What only looks holds and calls nobody.\n"
	"\n"
	"Without a command, and where standard input is a terminal, there is a shell with "
	"completion\nand history; else the commands are read from standard input.\n"
	"With several processes they are worked on one after another.\n";

static const char units[] =
	"A size is bytes, or a number with K, M, G or T (powers of 1024): `512M`, `1.5G`.\n"
	"A time is seconds, or a number with us, ms, s, m, h or d: `500us`, `10m`.\n";

static const char runbooks[] =
	"A runbook (`-f`) is one command a line; `#` begins a comment, `$1` to `$9` are its "
	"arguments,\n`$$` is the pid of the process.\n"
	"It is checked whole before its first command runs, and stops at the first error, with "
	"that\ncommand's exit status.\n"
	"\n"
	"A condition (`require`, `when`, `guard`) compares facts with sizes, times, numbers, "
	"versions,\nother facts or a share of one, by > >= < <= = !=, and, or, not and "
	"parentheses.\n"
	"What compares a fact that is not known of a process is neither true nor false.\n";

static const char harm[] =
	"Only 8 and 9 mean that the process may be affected; of several processes the highest "
	"status\ncounts.\n"
	"An error is one line on standard error with the fact, its number and the next step; with\n"
	"--json it is in the answer too.\n"
	"\n"
	"Should heapmedic be killed, the process goes on by itself at any instant; what is left "
	"of\nheapmedic in it is removed by the next run.\n"
	"A kill inside the hold can cost one early EINTR in a call whose manual allows it.\n";

static const struct {
	const char *name, *meaning;
} variables[] = {
	{ "NO_COLOR", "not empty: no colours, unless --color=always is given" },
	{ "TERM", "`dumb`, or not set: no colours" },
	{ "HEAPMEDIC_HISTORY", "the file that the shell remembers its lines in; empty: none" },
	{ "XDG_STATE_HOME", "below it, or below ~/.local/state, that file is heapmedic/history" },
	{ "XDG_RUNTIME_DIR", "where `guard` keeps its locks, unless it runs as root" },
}, files[] = {
	{ "/run/heapmedic", "locks of `guard`: when a process was last acted on (root)" },
	{ "/tmp/heapmedic-UID", "the same for others, where XDG_RUNTIME_DIR is not set" },
	{ "/usr/share/heapmedic", "runbooks that come with it (or below another prefix)" },
};

static void put_synopsis(FILE *out)
{
	static const struct {
		const char *options, *rest;
	} forms[] = {
		{ "-p", " \\fIPID\\fR [\\fICOMMAND\\fR [\\fIARG\\fR ...]]" },
		{ "-p", " \\fIPID\\fR \\fB\\-e\\fR \\fICMD\\fR [\\fB\\-e\\fR \\fICMD\\fR ...]" },
		{ "-p", " \\fIPID\\fR \\fB\\-f\\fR \\fIFILE\\fR [\\fIARG\\fR ...]" },
		{ "--load", " \\fISNAPSHOT\\fR [\\fICOMMAND\\fR]" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		fputs(i ? ".br\n" : "", out);
		roff_bold(out, "heapmedic");
		putc(' ', out);
		roff_bold(out, forms[i].options);
		fprintf(out, "%s\n", forms[i].rest);
	}
}

static void put_option(FILE *out, const struct option_row *o)
{
	char term[64];

	snprintf(term, sizeof(term), "%s%c%s%s%s", o->letter ? "-" : "",
		 o->letter ? o->letter : ' ', o->letter && o->name ? ", " : "", o->name ? "--" : "",
		 o->name ? o->name : "");
	roff_term(out, term[0] == ' ' ? term + 1 : term, o->meta, o->help);
}

/* ---- one command */

static void put_flags(FILE *out, unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *text;
	} says[] = {
		{ CMD_NO_PROCESS, "needs no process" },
		{ CMD_PASSIVE, "reads from outside" },
		{ CMD_HOLDS, "holds a thread for a moment" },
		{ CMD_CALLS, "calls into the process" },
		{ CMD_WRITES, "changes the process" },
		{ CMD_LOADED, "works on a snapshot too (--load)" },
	};
	const char *between = "(";

	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (flags & says[i].flag) {
			fputs(between, out);
			roff_inline(out, says[i].text);
			between = ", ";
		}
	fputs(")\n", out);
}

static void put_names(FILE *out)
{
	size_t n;
	const struct mallopt_fact *fact = mallopt_table(&n);

	for (size_t i = 0; i < n; i++)
		roff_term(out, fact[i].name, NULL, fact[i].meaning);
}

static void put_command(FILE *out, const struct command *row)
{
	char title[128];

	snprintf(title, sizeof(title), "%s%s%s%s%s", row->name, *row->usage ? " " : "", row->usage,
		 row->alias ? ", " : "", row->alias ? row->alias : "");
	roff_subsection(out, title);
	roff_inline(out, row->help);
	putc('\n', out);
	put_flags(out, row->flags);
	if (row->more)
		roff_text(out, row->more);
	for (size_t i = 0; i < COMMAND_OPTIONS && row->options[i].name; i++) {
		char term[64];

		snprintf(term, sizeof(term), "--%s", row->options[i].name);
		roff_term(out, term, row->options[i].meta, row->options[i].help);
	}
	if (row->completes == COMPLETE_MALLOPT)
		put_names(out);
	for (size_t i = 0; i < COMMAND_EXITS && row->exits[i].when; i++) {
		char code[32];

		snprintf(code, sizeof(code), "exit %d", (int)row->exits[i].code);
		roff_term(out, code, NULL, row->exits[i].when);
	}
	for (size_t i = 0; i < COMMAND_EXAMPLES && row->examples[i].line; i++) {
		fputs(".PP\n", out);
		roff_inline(out, row->examples[i].what);
		fputs(":\n", out);
		roff_example(out, row->examples[i].line);
	}
}

/* ---- the page */

static void put_facts(FILE *out)
{
	static const char *const cost[] = {
		[COST_QUICK] = "the kernel tells it at once",
		[COST_LOOK] = "the mappings or the heap are read",
		[COST_CALL] = "the allocator is asked by a call",
	};

	for (unsigned c = COST_QUICK; c <= COST_CALL; c++) {
		fputs(".PP\n", out);
		roff_inline(out, cost[c]);
		fputs(":\n", out);
		for (unsigned i = 0; i < FACT_COUNT; i++) {
			const struct fact_info *f = fact_info((enum fact_id)i);

			if (f->cost == c)
				roff_term(out, f->name, NULL, f->meaning);
		}
	}
}

static void put_exits(FILE *out)
{
	for (int code = HM_OK; code <= HM_INTERNAL; code++) {
		char text[8];

		snprintf(text, sizeof(text), "%d", code);
		roff_term(out, text, NULL, exit_meaning((enum hm_exit)code));
	}
	roff_text(out, harm);
}

static void put_tables(FILE *out)
{
	roff_section(out, "FACTS");
	roff_lead(out, "Names that conditions and `facts` know, and `metrics` prints.\n");
	put_facts(out);
	roff_section(out, "EXIT STATUS");
	put_exits(out);
	roff_section(out, "ENVIRONMENT");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		roff_term(out, variables[i].name, NULL, variables[i].meaning);
	roff_section(out, "FILES");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		roff_term(out, files[i].name, NULL, files[i].meaning);
}

void manual_write(FILE *out, const char *date)
{
	size_t n;
	const struct command *row = command_table(&n);
	const struct option_row *option;

	roff_title(out, "heapmedic", "1", date);
	roff_section(out, "NAME");
	fputs("heapmedic \\- where the memory of a running process is, and giving it back\n", out);
	roff_section(out, "SYNOPSIS");
	put_synopsis(out);
	roff_section(out, "DESCRIPTION");
	roff_lead(out, about);
	roff_section(out, "COMMANDS");
	for (size_t i = 0; i < n; i++)
		put_command(out, &row[i]);
	roff_section(out, "OPTIONS");
	roff_lead(out, "They stand before or behind the command.\n");
	option = option_table(&n);
	for (size_t i = 0; i < n; i++)
		if (option[i].places & OPT_ARGV)
			put_option(out, &option[i]);
	roff_text(out, units);
	roff_section(out, "RUNBOOKS AND CONDITIONS");
	roff_lead(out, runbooks);
	put_tables(out);
	roff_section(out, "SEE ALSO");
	fputs(".BR heapmedic\\-json (5),\n.BR malloc_trim (3),\n.BR malloc_info (3),\n"
	      ".BR mallopt (3),\n.BR jemalloc (3),\n.BR ptrace (2),\n.BR proc (5)\n",
	      out);
}
