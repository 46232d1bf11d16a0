// SPDX-License-Identifier: GPL-3.0-or-later
#include "roff.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* groff_char(7): these print as something else than in ASCII, or begin an escape. */
static void put_char(FILE *out, char c, bool literal)
{
	switch (c) {
	case '\\':
		fputs("\\e", out);
		break;
	case '-':
		fputs(literal ? "\\-" : "-", out);
		break;
	case '^':
		fputs("\\(ha", out);
		break;
	case '~':
		fputs("\\(ti", out);
		break;
	case '\'':
		fputs(literal ? "\\(aq" : "'", out);
		break;
	case '`':
		fputs("\\(ga", out);
		break;
	case '"':
		fputs("\\(dq", out);
		break;
	default:
		putc(c, out);
	}
}

/* At the begin of a line these are requests. */
static void guard_line(FILE *out, char c)
{
	if (c == '.' || c == '\'')
		fputs("\\&", out);
}

static void put_literal(FILE *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put_char(out, text[i], true);
}

/* Options and what stands in backquotes are to be typed as they are, the rest is prose. */
static void put_prose(FILE *out, const char *text, size_t len)
{
	bool word = true, option = false, code = false;

	guard_line(out, len ? text[0] : '\0');
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '`') {
			code = !code;
			fputs(code ? "\\fB" : "\\fR", out);
			continue;
		}
		if (word && c == '-')
			option = true;
		word = isspace((unsigned char)c) || strchr("([,", c) != NULL;
		if (word)
			option = false;
		put_char(out, c, option || code);
		if (c == '\n' && i + 1 < len)
			guard_line(out, text[i + 1]);
	}
	if (code)
		fputs("\\fR", out);
}

void roff_title(FILE *out, const char *name, const char *section, const char *date)
{
	fputs(".\\\" Made from heapmedic's own tables: see repl/manual.c.\n.TH ", out);
	for (const char *c = name; *c; c++)
		put_char(out, (char)toupper((unsigned char)*c), true);
	fprintf(out, " %s %s \"heapmedic " HM_VERSION "\" \"%s\"\n", section, date,
		section[0] == '1' ? "User Commands" : "File Formats");
}

void roff_section(FILE *out, const char *title)
{
	fprintf(out, ".SH %s\n", title);
}

void roff_subsection(FILE *out, const char *title)
{
	fputs(".SS ", out);
	put_literal(out, title, strlen(title));
	putc('\n', out);
}

void roff_inline(FILE *out, const char *text)
{
	put_prose(out, text, strlen(text));
}

void roff_bold(FILE *out, const char *text)
{
	fputs("\\fB", out);
	put_literal(out, text, strlen(text));
	fputs("\\fR", out);
}

static void put_example(FILE *out, const char *text, size_t len)
{
	fputs(".PP\n.in +4n\n.EX\n", out);
	for (size_t i = 0; i < len; i++) {
		if (i == 0 || text[i - 1] == '\n')
			guard_line(out, text[i]);
		put_char(out, text[i], true);
	}
	fputs("\n.EE\n.in\n", out);
}

void roff_example(FILE *out, const char *text)
{
	put_example(out, text, strlen(text));
}

/* Do all lines begin with two blanks? */
static bool is_verbatim(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((i == 0 || text[i - 1] == '\n') && strncmp(text + i, "  ", 2) != 0)
			return false;
	return true;
}

static void put_paragraphs(FILE *out, const char *text, bool lead)
{
	for (; *text; lead = false) {
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		while (len && text[len - 1] == '\n')
			len--;
		if (len && is_verbatim(text, len)) {
			put_example(out, text, len);
		} else if (len) {
			fputs(lead ? "" : ".PP\n", out);
			put_prose(out, text, len);
			putc('\n', out);
		}
		text = end ? end + 2 : text + strlen(text);
	}
}

void roff_text(FILE *out, const char *text)
{
	put_paragraphs(out, text, false);
}

void roff_lead(FILE *out, const char *text)
{
	put_paragraphs(out, text, true);
}

void roff_term(FILE *out, const char *term, const char *meta, const char *meaning)
{
	fputs(".TP\n", out);
	roff_bold(out, term);
	if (meta) {
		fputs(" \\fI", out);
		put_literal(out, meta, strlen(meta));
		fputs("\\fR", out);
	}
	putc('\n', out);
	roff_inline(out, meaning);
	putc('\n', out);
}
