// SPDX-License-Identifier: GPL-3.0-or-later
#include "help.h"

#include <stdlib.h>
#include <string.h>

#include "../agent/glibc.h"
#include "exits.h"

void help_commands(FILE *out)
{
	size_t n;
	const struct command *row = command_table(&n);

	for (size_t i = 0; i < n; i++) {
		char head[64], letters[6];

		snprintf(head, sizeof(head), "%s%s%s", row[i].name, *row[i].usage ? " " : "",
			 row[i].usage);
		/* a long one has a line for itself */
		fprintf(out, "  %-22s%s %-3s %s\n", head,
			strlen(head) > 22 ? "\n                        " : "",
			command_letters(row[i].flags, letters), row[i].help);
	}
	fputs("  p reads only, s holds a thread for a moment, c calls into the target,\n"
	      "  w changes it\n",
	      out);
}

static void print_option(FILE *out, const struct option_row *row)
{
	char head[64];

	snprintf(head, sizeof(head), "%s%c%s%s%s%s%s", row->letter ? "-" : "  ",
		 row->letter ? row->letter : ' ',
		 row->letter && row->name ? "/"
		 : row->letter		  ? ""
					  : " ",
		 row->name ? "--" : "", row->name ? row->name : "", row->meta ? " " : "",
		 row->meta ? row->meta : "");
	fprintf(out, "  %-30s %s\n", head, row->help);
}

void help_program(FILE *out)
{
	size_t n;
	const struct option_row *row = option_table(&n);

	fputs("heapmedic says where a running process's memory is, and gives memory back.\n"
	      "\n"
	      "  heapmedic -p PID [COMMAND [ARG...]]    one command, or the shell\n"
	      "  heapmedic -p PID -e CMD [-e CMD]       several commands, one session\n"
	      "  heapmedic -p PID -f FILE [ARG...]      a runbook\n"
	      "  heapmedic --load SNAPSHOT [COMMAND]    looking at what was saved\n"
	      "\n"
	      "Commands (help COMMAND says more):\n",
	      out);
	help_commands(out);
	fputs("\nOptions, before or behind the command:\n", out);
	for (size_t i = 0; i < n; i++)
		if (row[i].places & OPT_ARGV)
			print_option(out, &row[i]);
	fputs("\n"
	      "SIZE is bytes, or a number with K, M, G or T; TIME is seconds, or a number with\n"
	      "us, ms, s, m, h or d. Without a command, and where stdin is not a terminal,\n"
	      "the commands are read from stdin.\n"
	      "\nExit:\n",
	      out);
	for (int code = HM_OK; code <= HM_INTERNAL; code++)
		fprintf(out, "  %2d  %s\n", code, exit_meaning((enum hm_exit)code));
}

static void print_flags(FILE *out, unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *text;
	} words[] = {
		{ CMD_PASSIVE, "reads from outside" },
		{ CMD_HOLDS, "holds a thread for a moment" },
		{ CMD_CALLS, "calls into the target" },
		{ CMD_WRITES, "changes the target" },
		{ CMD_NO_PROCESS, "needs no process" },
	};
	const char *between = "";

	fputs("  (", out);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (flags & words[i].flag) {
			fprintf(out, "%s%s", between, words[i].text);
			between = ", ";
		}
	fputs(")\n", out);
}

static void print_own_options(FILE *out, const struct command *row)
{
	for (size_t i = 0; i < COMMAND_OPTIONS && row->options[i].name; i++) {
		const struct command_option *o = &row->options[i];
		char head[64];

		snprintf(head, sizeof(head), "--%s%s%s", o->name, o->meta ? " " : "",
			 o->meta ? o->meta : "");
		fprintf(out, "  %-20s %s\n", head, o->help);
	}
}

static void print_mallopt_names(FILE *out)
{
	size_t n;
	const struct mallopt_fact *fact = mallopt_table(&n);

	fputs("\nNames:\n", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "  %-20s %s\n", fact[i].name, fact[i].meaning);
}

/* In the shell the example as it is typed there, which names no process. */
static const char *shell_line(const struct command *row, const char *line)
{
	static const char program[] = "heapmedic -p 4711 ";
	size_t n = sizeof(program) - 1;

	if (strncmp(line, program, n) == 0 && strncmp(line + n, row->name, strlen(row->name)) == 0)
		return line + n;
	return line;
}

static void print_examples(FILE *out, const struct command *row, bool shell)
{
	fputs("\nExamples:\n", out);
	for (size_t i = 0; i < COMMAND_EXAMPLES && row->examples[i].line; i++) {
		const char *line =
			shell ? shell_line(row, row->examples[i].line) : row->examples[i].line;
		const char *what = row->examples[i].what;
		bool fits = strlen(line) <= 40 && strlen(what) <= 36;

		fprintf(out, fits ? "  %-40s %s\n" : "  %s\n      %s\n", line, what);
	}
}

static void print_exits(FILE *out, const struct command *row)
{
	fputs("\nExit:\n", out);
	for (int code = HM_OK; code <= HM_INTERNAL; code++) {
		const char *when = exit_of_command(row, (enum hm_exit)code);

		if (when)
			fprintf(out, "  %2d  %s\n", code, when);
	}
}

void help_command(FILE *out, const struct command *row, bool shell)
{
	fprintf(out, "%s%s%s%s%s\n  %s\n", row->name, *row->usage ? " " : "", row->usage,
		row->alias ? ", or " : "", row->alias ? row->alias : "", row->help);
	print_flags(out, row->flags);
	print_own_options(out, row);
	if (row->more)
		fprintf(out, "\n%s", row->more);
	if (row->completes == COMPLETE_MALLOPT)
		print_mallopt_names(out);
	print_examples(out, row, shell);
	print_exits(out, row);
}
