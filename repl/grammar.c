// SPDX-License-Identifier: GPL-3.0-or-later
#include "grammar.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* $@ multiplies words: a text of some kilobytes must not ask for gigabytes. */
#define MAX_WORDS 65536
#define MAX_BYTES ((size_t)16 * 1024 * 1024)

struct parser {
	const char *text;
	size_t len, pos;
	unsigned line;
	const struct grammar_vars *vars;
	struct grammar *out;
	struct statement cur;
	size_t cur_cap, out_cap;
	char *word;
	size_t word_len, word_cap;
	bool in_word;
	size_t words, bytes;
	struct diag *d;
};

static int syntax(struct parser *p, const char *hint, const char *what)
{
	return diag_fail(p->d, -EINVAL, HM_USAGE, "syntax", hint, "%s", what);
}

static int out_of_memory(struct parser *p)
{
	return diag_internal(p->d, -ENOMEM, "parsing commands");
}

static int word_add(struct parser *p, char c)
{
	if (p->bytes++ > MAX_BYTES)
		return syntax(p, "split it into several files", "the commands are too long");
	if (p->word_len + 1 >= p->word_cap) {
		size_t cap = p->word_cap ? p->word_cap * 2 : 32;
		char *grown = realloc(p->word, cap);

		if (!grown)
			return out_of_memory(p);
		p->word = grown;
		p->word_cap = cap;
	}
	p->word[p->word_len++] = c;
	p->in_word = true;
	return 0;
}

static int word_add_text(struct parser *p, const char *s)
{
	int err = 0;

	p->in_word = true;
	while (*s && !err)
		err = word_add(p, *s++);
	return err;
}

/* Takes word over, also on error. */
static int statement_add(struct parser *p, char *word)
{
	size_t used = (size_t)p->cur.argc;

	if (p->words++ > MAX_WORDS) {
		free(word);
		return syntax(p, "split it into several files", "more than 65536 words");
	}
	if (used + 1 >= p->cur_cap) {
		size_t cap = p->cur_cap ? p->cur_cap * 2 : 8;
		char **grown = realloc(p->cur.argv, cap * sizeof(*grown));

		if (!grown) {
			free(word);
			return out_of_memory(p);
		}
		p->cur.argv = grown;
		p->cur_cap = cap;
	}
	p->cur.argv[used] = word;
	p->cur.argv[used + 1] = NULL;
	p->cur.argc++;
	return 0;
}

/* Ends the word in progress, if there is one. */
static int word_end(struct parser *p)
{
	char *copy;

	if (!p->in_word)
		return 0;
	copy = strndup(p->word ? p->word : "", p->word_len);
	if (!copy)
		return out_of_memory(p);
	p->word_len = 0;
	p->in_word = false;
	return statement_add(p, copy);
}

static void statement_free(struct statement *s)
{
	for (int i = 0; i < s->argc; i++)
		free(s->argv[i]);
	free(s->argv);
	memset(s, 0, sizeof(*s));
}

static int statement_end(struct parser *p)
{
	int err = word_end(p);

	if (err || p->cur.argc == 0)
		return err;
	if (p->out->n == p->out_cap) {
		size_t cap = p->out_cap ? p->out_cap * 2 : 8;
		struct statement *grown = realloc(p->out->v, cap * sizeof(*grown));

		if (!grown)
			return out_of_memory(p);
		p->out->v = grown;
		p->out_cap = cap;
	}
	p->out->v[p->out->n++] = p->cur;
	memset(&p->cur, 0, sizeof(p->cur));
	p->cur_cap = 0;
	return 0;
}

static int variable_argument(struct parser *p, int index)
{
	char what[64];

	if (p->vars && index <= p->vars->argc)
		return word_add_text(p, p->vars->argv[index - 1]);
	snprintf(what, sizeof(what), "$%d is not given", index);
	return syntax(p, "arguments follow the file: -f FILE ARG...; a plain $ is \\$ or '$'",
		      what);
}

static int variable_all(struct parser *p)
{
	int n = p->vars ? p->vars->argc : 0;
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		err = word_add_text(p, p->vars->argv[i]);
		if (!err && i + 1 < n)
			err = word_end(p);
	}
	return err;
}

static int variable_pid(struct parser *p)
{
	char pid[32];

	if (!p->vars || p->vars->pid <= 0)
		return syntax(p, "name a process with -p PID; a plain $ is \\$ or '$'",
			      "$$ is the target's pid, and there is no target");
	snprintf(pid, sizeof(pid), "%ld", p->vars->pid);
	return word_add_text(p, pid);
}

/* After a $ that is not quoted away. */
static int take_variable(struct parser *p)
{
	char c = p->pos < p->len ? p->text[p->pos] : '\0';
	char after = p->pos + 1 < p->len ? p->text[p->pos + 1] : '\0';

	if (c >= '1' && c <= '9' && !(after >= '0' && after <= '9')) {
		p->pos++;
		return variable_argument(p, c - '0');
	}
	if (c == '@') {
		p->pos++;
		return variable_all(p);
	}
	if (c == '$') {
		p->pos++;
		return variable_pid(p);
	}
	return syntax(p, "variables are $1 to $9, $@ and $$; a plain $ is \\$ or '$'",
		      "$ without a variable");
}

static bool at_newline(const struct parser *p, size_t pos, size_t *len)
{
	if (pos < p->len && p->text[pos] == '\n') {
		*len = 1;
		return true;
	}
	if (pos + 1 < p->len && p->text[pos] == '\r' && p->text[pos + 1] == '\n') {
		*len = 2;
		return true;
	}
	return false;
}

/* After a backslash outside single quotes. */
static int take_escape(struct parser *p, bool quoted)
{
	static const char from[] = "nt", to[] = "\n\t";
	const char *known;
	size_t nl;
	char c;

	if (p->pos >= p->len)
		return -EAGAIN;
	if (at_newline(p, p->pos, &nl)) {
		p->pos += nl;
		p->line++;
		return p->pos >= p->len ? -EAGAIN : 0;
	}
	c = p->text[p->pos++];
	if (c == '\0')
		return syntax(p, "commands are text", "a NUL byte");
	known = quoted ? strchr(from, c) : NULL;
	return word_add(p, known ? to[known - from] : c);
}

static int take_quoted(struct parser *p, char quote)
{
	int err = 0;

	p->in_word = true;
	while (!err) {
		char c = p->pos < p->len ? p->text[p->pos] : '\n';

		if (c == '\0')
			return syntax(p, "commands are text", "a NUL byte");
		if (c == '\n')
			return syntax(p, "a quote ends on the line where it begins",
				      quote == '"' ? "unclosed double quote"
						   : "unclosed single quote");
		p->pos++;
		if (c == quote)
			return 0;
		if (quote == '"' && c == '\\')
			err = take_escape(p, true);
		else if (quote == '"' && c == '$')
			err = take_variable(p);
		else
			err = word_add(p, c);
	}
	return err;
}

static int take_newline(struct parser *p)
{
	int err = statement_end(p);

	p->line++;
	return err;
}

static int take_char(struct parser *p)
{
	char c = p->text[p->pos++];

	if (!p->in_word && c == '#') {
		while (p->pos < p->len && p->text[p->pos] != '\n')
			p->pos++;
		return 0;
	}
	if (c == '\n')
		return take_newline(p);
	if (c == ';')
		return statement_end(p);
	if (c == ' ' || c == '\t' || c == '\r')
		return word_end(p);
	if (!p->in_word && p->cur.argc == 0)
		p->cur.line = p->line;
	switch (c) {
	case '\0':
		return syntax(p, "commands are text", "a NUL byte");
	case '\'':
	case '"':
		return take_quoted(p, c);
	case '\\':
		return take_escape(p, false);
	case '$':
		return take_variable(p);
	default:
		return word_add(p, c);
	}
}

int grammar_parse(const char *text, size_t len, unsigned first_line,
		  const struct grammar_vars *vars, struct grammar *out, unsigned *err_line,
		  struct diag *d)
{
	struct parser p = {
		.text = text, .len = len, .line = first_line, .vars = vars, .out = out, .d = d
	};
	int err = 0;

	memset(out, 0, sizeof(*out));
	while (p.pos < p.len && !err)
		err = take_char(&p);
	if (!err)
		err = statement_end(&p);
	*err_line = p.line;
	free(p.word);
	statement_free(&p.cur);
	if (err)
		grammar_free(out);
	return err;
}

void grammar_free(struct grammar *g)
{
	for (size_t i = 0; i < g->n; i++)
		statement_free(&g->v[i]);
	free(g->v);
	memset(g, 0, sizeof(*g));
}

/* One step of the scan for completion: quotes and escapes, nothing else. */
struct scan {
	char quote;
	bool in_word;
	char *buf;
	size_t used, size;
};

static void scan_put(struct scan *s, char c)
{
	s->in_word = true;
	if (s->used + 1 < s->size)
		s->buf[s->used++] = c;
}

static bool scan_breaks(const struct scan *s, char c)
{
	return !s->quote && (c == ' ' || c == '\t' || c == ';');
}

static void scan_char(struct scan *s, const char *line, size_t cursor, size_t *i)
{
	char c = line[*i];

	if (s->quote && c == s->quote) {
		s->quote = '\0';
	} else if (!s->quote && (c == '\'' || c == '"')) {
		s->quote = c;
		s->in_word = true;
	} else if (c == '\\' && s->quote != '\'' && *i + 1 < cursor) {
		++*i;
		scan_put(s, line[*i]);
	} else {
		scan_put(s, c);
	}
}

size_t grammar_before(const char *line, size_t cursor, char *buf, size_t size, char **before,
		      size_t max, size_t *start)
{
	struct scan s = { .buf = buf, .size = size };
	size_t n = 0, begin = 0;

	*start = 0;
	for (size_t i = 0; i < cursor; i++) {
		if (!scan_breaks(&s, line[i])) {
			if (!s.in_word)
				*start = i;
			scan_char(&s, line, cursor, &i);
			continue;
		}
		if (s.in_word && n < max && s.used < s.size) {
			buf[s.used++] = '\0';
			before[n++] = buf + begin;
		}
		if (line[i] == ';')
			n = 0;
		begin = s.used;
		s.in_word = false;
	}
	if (!s.in_word)
		*start = cursor;
	return n;
}
