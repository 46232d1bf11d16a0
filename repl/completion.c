// SPDX-License-Identifier: GPL-3.0-or-later
/* Completion of heapmedic's command line, made of the tables. */
#include <stdbool.h>
#include <string.h>

#include "../agent/facts.h"
#include "../agent/mallctl.h"
#include "../agent/mallopt.h"
#include "command.h"
#include "manual.h"
#include "prof.h"

/* What a value is, by how help calls it. */
enum value_kind { VALUE_OTHER, VALUE_FILE, VALUE_PID, VALUE_COMM, VALUE_WORDS };

static enum value_kind value_kind(const char *meta)
{
	static const char *const files[] = { "FILE", "HEAP", "SNAPSHOT", "PATH", "FILE|syslog" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(meta, files[i]) == 0)
			return VALUE_FILE;
	if (strcmp(meta, "PID") == 0)
		return VALUE_PID;
	if (strcmp(meta, "COMM") == 0)
		return VALUE_COMM;
	return strchr(meta, '|') ? VALUE_WORDS : VALUE_OTHER;
}

/* The words of "auto|always|never", or of "[dirty|muzzy] [all|INDEX]": those in small letters. */
static void put_words(FILE *out, const char *text)
{
	const char *between = "";

	while (*text) {
		size_t n = strcspn(text, "[]| ");

		if (n && *text >= 'a' && *text <= 'z') {
			fprintf(out, "%s%.*s", between, (int)n, text);
			between = " ";
		}
		text += n;
		text += strspn(text, "[]| ");
	}
}

static void put_facts(FILE *out)
{
	for (unsigned i = 0; i < FACT_COUNT; i++)
		fprintf(out, "%s%s", i ? " " : "", fact_info((enum fact_id)i)->name);
}

/* With `all` for an index, which stands for each of them. */
static void put_ctl(FILE *out)
{
	size_t n;
	const struct ctl_name *row = ctl_table(&n);

	for (size_t i = 0; i < n; i++) {
		if (row[i].forbidden)
			continue;
		for (const char *c = row[i].name; *c; c++) {
			if (*c == '<') {
				fputs("all", out);
				c += 2;
			} else {
				putc(*c, out);
			}
		}
		putc(' ', out);
	}
}

static void put_commands(FILE *out)
{
	size_t n;
	const struct command *row = command_table(&n);

	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%s%s%s", i ? " " : "", row[i].name, row[i].alias ? " " : "",
			row[i].alias ? row[i].alias : "");
}

static void put_keys(FILE *out)
{
	size_t n;
	const struct option_row *o = option_table(&n);

	for (size_t i = 0; i < n; i++)
		if (o[i].places & OPT_SET)
			fprintf(out, "%s ", o[i].name);
}

/* The words that may stand behind a command, with blanks between them; false: none are known. */
static bool put_arguments(FILE *out, const struct command *row)
{
	const struct mallopt_fact *fact;
	const char *name;
	size_t n;

	switch (row->completes) {
	case COMPLETE_COMMAND:
		put_commands(out);
		return true;
	case COMPLETE_CTL:
		put_ctl(out);
		return true;
	case COMPLETE_MALLOPT:
		fact = mallopt_table(&n);
		for (size_t i = 0; i < n; i++)
			fprintf(out, "%s%s", i ? " " : "", fact[i].name);
		return true;
	case COMPLETE_SET:
		put_keys(out);
		return true;
	case COMPLETE_FACT:
		put_facts(out);
		return true;
	case COMPLETE_PROF:
		for (size_t i = 0; (name = prof_name(i)); i++)
			fprintf(out, "%s%s", i ? " " : "", name);
		return true;
	case COMPLETE_TID:
		fputs("all", out);
		return true;
	case COMPLETE_USAGE:
		put_words(out, row->usage);
		return true;
	default:
		return false;
	}
}

/* ---- bash */

static void bash_value(FILE *out, const char *pattern, const char *meta)
{
	fprintf(out, "\t%s) ", pattern);
	switch (value_kind(meta)) {
	case VALUE_FILE:
		fputs("mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); compopt -o filenames "
		      "2>/dev/null",
		      out);
		break;
	case VALUE_PID:
		fputs("_heapmedic_offer \"$(cd /proc && echo [0-9]*)\"", out);
		break;
	case VALUE_COMM:
		fputs("_heapmedic_offer \"$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u)\"", out);
		break;
	case VALUE_WORDS:
		fputs("_heapmedic_offer '", out);
		put_words(out, meta);
		putc('\'', out);
		break;
	default:
		fputs(":", out);
		break;
	}
	fputs(" ;;\n", out);
}

/* An option that takes a value, of a command (or "" for all): "trim --min-yield)". */
static void bash_values(FILE *out)
{
	size_t n, options;
	const struct command *row = command_table(&n);
	const struct option_row *o = option_table(&options);
	char pattern[96];

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < COMMAND_OPTIONS && row[i].options[k].name; k++) {
			if (!row[i].options[k].meta)
				continue;
			snprintf(pattern, sizeof(pattern), "'%s --%s'", row[i].name,
				 row[i].options[k].name);
			bash_value(out, pattern, row[i].options[k].meta);
		}
	for (size_t i = 0; i < options; i++) {
		if (!o[i].meta || !(o[i].places & OPT_ARGV))
			continue;
		if (o[i].name && o[i].letter)
			snprintf(pattern, sizeof(pattern), "*' --%s' | *' -%c'", o[i].name,
				 o[i].letter);
		else if (o[i].name)
			snprintf(pattern, sizeof(pattern), "*' --%s'", o[i].name);
		else
			snprintf(pattern, sizeof(pattern), "*' -%c'", o[i].letter);
		bash_value(out, pattern, o[i].meta);
	}
}

static void bash_options(FILE *out)
{
	size_t n, options;
	const struct command *row = command_table(&n);
	const struct option_row *o = option_table(&options);

	fputs("\tlocal common='", out);
	for (size_t i = 0; i < options; i++)
		if (o[i].name && (o[i].places & OPT_ARGV))
			fprintf(out, "--%s ", o[i].name);
	fputs("'\n\tcase $1 in\n", out);
	for (size_t i = 0; i < n; i++) {
		if (!row[i].options[0].name)
			continue;
		fprintf(out, "\t%s) common+='", row[i].name);
		for (size_t k = 0; k < COMMAND_OPTIONS && row[i].options[k].name; k++)
			fprintf(out, "--%s ", row[i].options[k].name);
		fputs("' ;;\n", out);
	}
	fputs("\tesac\n\t_heapmedic_offer \"$common\"\n", out);
}

static void bash_arguments(FILE *out)
{
	size_t n;
	const struct command *row = command_table(&n);

	for (size_t i = 0; i < n; i++) {
		bool file = row[i].completes == COMPLETE_FILE;

		if (row[i].completes == COMPLETE_NONE)
			continue;
		fprintf(out, "\t%s) ", row[i].name);
		if (file) {
			fputs("mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); compopt -o "
			      "filenames 2>/dev/null",
			      out);
		} else {
			fputs("_heapmedic_offer '", out);
			(void)put_arguments(out, &row[i]);
			putc('\'', out);
		}
		fputs(" ;;\n", out);
	}
}

static const char bash_head[] =
	"# SPDX-License-Identifier: GPL-3.0-or-later\n"
	"# shellcheck shell=bash\n"
	"# Completion of heapmedic's command line, made from its tables.\n"
	"\n"
	"_heapmedic_offer() { # WORDS\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	"}\n"
	"\n"
	"# Does this option, of that command, take a value? Then that is offered.\n"
	"_heapmedic_value() { # COMMAND OPTION\n"
	"\tcase \"$1 $2\" in\n";

static const char bash_main[] =
	"\n"
	"_heapmedic() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} cmd='' before='' word i\n"
	"\tCOMPREPLY=()\n"
	"\t# readline takes --via=proxy apart at the =\n"
	"\t[ \"$cur\" != = ] || cur=''\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\t[ \"$word\" != = ] || continue\n"
	"\t\tif [ -n \"$before\" ]; then\n"
	"\t\t\tbefore=''\n"
	"\t\telif [[ $word == -* ]]; then\n"
	"\t\t\tif _heapmedic_value \"$cmd\" \"$word\"; then before=$word; fi\n"
	"\t\telif [ -z \"$cmd\" ] && [[ $word != *[!0-9]* ]]; then\n"
	"\t\t\t: # a pid\n"
	"\t\telif [ -z \"$cmd\" ]; then\n"
	"\t\t\tcmd=$word\n"
	"\t\tfi\n"
	"\tdone\n"
	"\tCOMPREPLY=()\n"
	"\tif [ -n \"$before\" ]; then\n"
	"\t\t_heapmedic_value \"$cmd\" \"$before\"\n"
	"\telif [[ $cur == -* ]]; then\n"
	"\t\t_heapmedic_options \"$cmd\"\n"
	"\telif [ -z \"$cmd\" ]; then\n";

void completion_bash(FILE *out)
{
	fputs(bash_head, out);
	bash_values(out);
	fputs("\t*) return 1 ;;\n\tesac\n\treturn 0\n}\n\n"
	      "_heapmedic_options() { # COMMAND\n",
	      out);
	bash_options(out);
	fputs("}\n\n_heapmedic_arguments() { # COMMAND\n\tcase $1 in\n", out);
	bash_arguments(out);
	fputs("\tesac\n}\n", out);
	fputs(bash_main, out);
	fputs("\t\t_heapmedic_offer '", out);
	put_commands(out);
	fputs("'\n\telse\n\t\t_heapmedic_arguments \"$cmd\"\n\tfi\n}\n\n"
	      "complete -F _heapmedic heapmedic\n",
	      out);
}

/* ---- zsh */

/* In single quotes, inside the brackets of a specification for _arguments. */
static void zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", out);
		else if (strchr("[]:\\", *text))
			putc('\\', out);
		putc(*text, out);
	}
}

static void zsh_value(FILE *out, const char *meta)
{
	if (!meta)
		return;
	putc(':', out);
	zsh_text(out, meta);
	putc(':', out);
	switch (value_kind(meta)) {
	case VALUE_FILE:
		fputs("_files", out);
		break;
	case VALUE_PID:
		fputs("_pids", out);
		break;
	case VALUE_COMM:
		fputs("_process_names", out);
		break;
	case VALUE_WORDS:
		putc('(', out);
		put_words(out, meta);
		putc(')', out);
		break;
	default:
		putc(' ', out);
		break;
	}
}

/* A line "  '*--name[help]:META:action'"; more of the same may be given. */
static void zsh_option(FILE *out, const char *dashes, const char *name, const char *meta,
		       const char *help)
{
	/* --name=VALUE and --name VALUE */
	fprintf(out, "    '*%s%s%s[", dashes, name, meta && dashes[1] ? "=" : "");
	zsh_text(out, help);
	putc(']', out);
	zsh_value(out, meta);
	fputs("'\n", out);
}

static void zsh_common(FILE *out)
{
	size_t n;
	const struct option_row *o = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		const char letter[2] = { o[i].letter, '\0' };

		if (!(o[i].places & OPT_ARGV))
			continue;
		if (o[i].letter)
			zsh_option(out, "-", letter, o[i].meta, o[i].help);
		if (o[i].name)
			zsh_option(out, "--", o[i].name, o[i].meta, o[i].help);
	}
}

static void zsh_command(FILE *out, const struct command *row)
{
	fprintf(out, "  %s)\n    _arguments -S $common \\\n", row->name);
	for (size_t k = 0; k < COMMAND_OPTIONS && row->options[k].name; k++) {
		const struct command_option *o = &row->options[k];

		fprintf(out, "      '--%s%s[", o->name, o->meta ? "=" : "");
		zsh_text(out, o->help);
		putc(']', out);
		zsh_value(out, o->meta);
		fputs("' \\\n", out);
	}
	fputs("      '*:: :", out);
	if (row->completes == COMPLETE_FILE) {
		fputs("_files", out);
	} else if (row->completes != COMPLETE_NONE) {
		putc('(', out);
		(void)put_arguments(out, row);
		putc(')', out);
	} else {
		putc(' ', out);
	}
	fputs("' ;;\n", out);
}

static const char zsh_head[] = "#compdef heapmedic\n"
			       "# SPDX-License-Identifier: GPL-3.0-or-later\n"
			       "# Completion of heapmedic's command line, made from its tables.\n"
			       "\n"
			       "_process_names() {\n"
			       "  local -a names\n"
			       "  names=(${(u)${(f)\"$(cat /proc/[0-9]*/comm 2>/dev/null)\"}})\n"
			       "  compadd -a names\n"
			       "}\n"
			       "\n"
			       "_heapmedic() {\n"
			       "  local context state line\n"
			       "  local -a commands common\n"
			       "  commands=(\n";

static const char zsh_main[] = "  )\n"
			       "  _arguments -S -C $common '1: :->command' '*:: :->words'\n"
			       "  # a pid in place of a command: the command comes next\n"
			       "  if [[ $state == words && $words[1] == <-> ]]; then\n"
			       "    shift words\n"
			       "    (( CURRENT-- ))\n"
			       "    (( CURRENT > 1 )) || state=command\n"
			       "  fi\n"
			       "  if [[ $state == command ]]; then\n"
			       "    _describe command commands\n"
			       "    return\n"
			       "  fi\n"
			       "  [[ $state == words ]] || return\n"
			       "  case $words[1] in\n";

void completion_zsh(FILE *out)
{
	size_t n;
	const struct command *row = command_table(&n);

	fputs(zsh_head, out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "    '%s:", row[i].name);
		zsh_text(out, row[i].help);
		fputs("'\n", out);
	}
	fputs("  )\n  common=(\n", out);
	zsh_common(out);
	fputs(zsh_main, out);
	for (size_t i = 0; i < n; i++)
		zsh_command(out, &row[i]);
	fputs("  esac\n}\n\n_heapmedic \"$@\"\n", out);
}
