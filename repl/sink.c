// SPDX-License-Identifier: GPL-3.0-or-later
#include "sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fold.h"

static bool color_fits(FILE *out, enum color_when color)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	if (no && *no)
		return false;
	return isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0;
}

void sink_init(struct sink *s, FILE *out, FILE *err, enum color_when color)
{
	memset(s, 0, sizeof(*s));
	s->out = out;
	s->err = err;
	sink_color(s, color);
}

void sink_color(struct sink *s, enum color_when color)
{
	s->color = color_fits(s->terminal ? s->terminal : s->out, color);
	s->color_err = color_fits(s->err, color);
}

void sink_hold(struct sink *s)
{
	FILE *f = s->terminal ? NULL : open_memstream(&s->held, &s->held_len);

	if (!f)
		return;
	s->terminal = s->out;
	s->out = f;
}

char *sink_release(struct sink *s, size_t *len)
{
	bool whole;

	if (!s->terminal)
		return NULL;
	whole = fclose(s->out) == 0;
	s->out = s->terminal;
	s->terminal = NULL;
	*len = s->held_len;
	if (!whole && !s->write_error)
		s->write_error = ENOMEM;
	return s->held;
}

bool sink_is_terminal(const struct sink *s)
{
	return isatty(fileno(s->terminal ? s->terminal : s->out));
}

FILE *sink_talk(const struct sink *s)
{
	return s->terminal && isatty(fileno(s->err)) ? s->out : s->err;
}

int sink_flush(struct sink *s)
{
	errno = 0;
	if (!s->write_error && (fflush(s->out) || ferror(s->out)))
		s->write_error = errno ? errno : EIO;
	return -s->write_error;
}

/* Seen on a dark background and on a light one: no yellow. */
static const char *const codes[] = {
	[PAINT_GOOD] = "\033[32m",
	[PAINT_BAD] = "\033[31m",
	[PAINT_WARN] = "\033[35m",
	[PAINT_HEAD] = "\033[1m",
};

const char *sink_paint(const struct sink *s, enum paint p)
{
	return s->color ? codes[p] : "";
}

const char *sink_plain(const struct sink *s)
{
	return s->color ? "\033[0m" : "";
}

const char *sink_paint_err(const struct sink *s, enum paint p)
{
	return s->color_err ? codes[p] : "";
}

const char *sink_plain_err(const struct sink *s)
{
	return s->color_err ? "\033[0m" : "";
}

unsigned sink_width(const struct sink *s)
{
	struct winsize w;
	int fd = fileno(s->terminal ? s->terminal : s->out);

	if (fd < 0 || ioctl(fd, TIOCGWINSZ, &w))
		return 0;
	return w.ws_col;
}

/* As a terminal shows it: without the escape sequences of sink_paint. */
static size_t visible(const char *text)
{
	size_t n = 0;

	for (const char *at = text; *at; at++)
		if (*at == '\033' && strchr(at, 'm'))
			at = strchr(at, 'm');
		else
			n++;
	return n;
}

void sink_parts(const struct sink *s, const char *const *parts, size_t n)
{
	size_t width = sink_width(s), used = 0;

	for (size_t i = 0; i < n; i++) {
		/* with the comma behind it, and what is before it */
		size_t len = visible(parts[i]) + (i + 1 < n);
		bool fits = !width || used + 1 + len <= width;

		if (i)
			fputs(fits ? " " : "\n  ", s->out);
		used = i && !fits ? 2 + len : used + (i > 0) + len;
		fprintf(s->out, "%s%s", parts[i], i + 1 < n ? "," : "\n");
	}
}

/* A word that is longer than a line is cut. Returns where the line is then. */
static size_t put_word(FILE *out, unsigned width, unsigned indent, size_t at, const char *word,
		       size_t len)
{
	while (width > indent && at + len > width) {
		size_t some = width - at;

		fprintf(out, "%.*s\n%*s", (int)some, word, (int)indent, "");
		word += some;
		len -= some;
		at = indent;
	}
	fprintf(out, "%.*s", (int)len, word);
	return at + len;
}

void sink_words(const struct sink *s, unsigned indent, const char *text)
{
	unsigned width = sink_width(s);
	size_t at = 0;

	while (*text) {
		size_t gap = strspn(text, " "), len = strcspn(text + gap, " ");

		if (width && at && at + gap + len > width) {
			fprintf(s->out, "\n%*s", (int)indent, "");
			at = indent;
		} else {
			fprintf(s->out, "%*s", (int)gap, "");
			at += gap;
		}
		at = put_word(s->out, width, indent, at, text + gap, len);
		text += gap + len;
	}
	putc('\n', s->out);
}

void sink_text(FILE *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f))
			putc(c, out);
		else
			fprintf(out, "\\x%02x", c);
	}
}

const char *text_size(char buf[SIZE_TEXT], uint64_t bytes, bool raw)
{
	if (!raw)
		return size_format(bytes, buf);
	snprintf(buf, SIZE_TEXT, "%" PRIu64, bytes);
	return buf;
}

const char *text_size_fine(char buf[SIZE_TEXT], uint64_t bytes, bool raw)
{
	return raw ? text_size(buf, bytes, true) : size_format_fine(bytes, buf);
}

const char *text_delta(char buf[SIZE_TEXT], int64_t bytes, bool raw)
{
	if (!raw)
		return size_format_delta(bytes, buf);
	snprintf(buf, SIZE_TEXT, bytes ? "%+" PRId64 : "%" PRId64, bytes);
	return buf;
}

/* Words of a runbook and names of files may hold what a terminal would obey. Other than with the
 * target's text, letters beyond ASCII stay what they are. */
static void put_line(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);

	while (left) {
		size_t n = utf8_length(s, left), len = n ? n : 1;
		bool c1 = n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
		bool plain = n && !c1 && s[0] >= 0x20 && s[0] != 0x7f;

		if (plain)
			fwrite(s, 1, len, out);
		for (size_t i = 0; !plain && i < len; i++)
			fprintf(out, "\\x%02x", s[i]);
		s += len;
		left -= len;
	}
}

static void put_error(const struct sink *s, FILE *out, const char *origin, const struct diag *d)
{
	fputs(sink_paint_err(s, PAINT_BAD), out);
	put_line(out, origin ? origin : "heapmedic");
	fprintf(out, ":%s ", sink_plain_err(s));
	put_line(out, d->text);
	if (d->hint[0]) {
		fputs("; next: ", out);
		put_line(out, d->hint);
	}
	putc('\n', out);
}

void sink_error(struct sink *s, const char *origin, const struct diag *d)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f) {
		put_error(s, s->err, origin, d);
		return;
	}
	put_error(s, f, origin, d);
	if (fclose(f) == 0)
		fold_to(s->err, text, len);
	free(text);
}
