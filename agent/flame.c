// SPDX-License-Identifier: GPL-3.0-or-later
#include "flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "size.h"

/* Pixels; flame.js knows GAP and CHAR. */
#define WIDTH  1200.0
#define GAP    10.0
#define ROW    16
#define CHAR   7
#define HEAD   60   /* above the frames: title, buttons */
#define FOOT   40   /* below: what the pointer is on */
#define NARROW 1e-5 /* of the whole: less is left out */

/* "script": flame.js */
#include "flame_js.inc"

static const char style[] =
	"text{font-family:monospace;font-size:12px;fill:#000}"
	"#title{font-size:16px;text-anchor:middle}"
	"#frames>g{cursor:pointer}#frames>g:hover>rect{stroke:#000;stroke-width:1}"
	"#search,#reset{cursor:pointer;text-decoration:underline;visibility:hidden}"
	"#search,#matched{text-anchor:end}";

struct picture {
	const struct calls *c;
	const struct call_tree *t;
	struct bytes *out;
	double *x;    /* by node: live bytes left of it */
	double least; /* live bytes of a frame that is drawn */
	size_t left_out;
	uint32_t depth; /* of the deepest frame that is drawn */
};

/* ---- XML */

/* Text is anything; what XML 1.0 has no way to say is a "?". */
static void put_escaped(struct bytes *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char u = (unsigned char)text[i];

		if (u == '&')
			bytes_text(out, "&amp;");
		else if (u == '<')
			bytes_text(out, "&lt;");
		else if (u == '>')
			bytes_text(out, "&gt;");
		else if (u == '"')
			bytes_text(out, "&quot;");
		else
			bytes_char(out, u >= 0x20 && u < 0x7f ? text[i] : '?');
	}
}

/* Each name has a colour of its own that is always the same. */
static unsigned hash(const char *text)
{
	unsigned h = 2166136261u; /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h ^ h >> 15;
}

static void put_colour(struct bytes *out, const char *name)
{
	unsigned h = hash(name);

	if (strstr(name, "+0x") || strncmp(name, "0x", 2) == 0)
		bytes_printf(out, "#%02x%02x%02x", 200 + h % 20, 200 + h % 20, 200 + h % 20);
	else
		bytes_printf(out, "#%02x%02x%02x", 205 + h % 50, 70 + (h >> 8) % 130,
			     (h >> 16) % 60);
}

/* ---- frames */

static double pixels(const struct picture *p, double bytes)
{
	double whole = p->t->v[0].total;

	return whole > 0 ? bytes * (WIDTH - 2 * GAP) / whole : 0;
}

static void put_label(struct bytes *out, const char *name, double width)
{
	size_t fit = width > 6 ? (size_t)((width - 6) / CHAR) : 0, len = strlen(name);

	if (fit < 3)
		return;
	put_escaped(out, name, len <= fit ? len : fit - 2);
	if (len > fit)
		bytes_text(out, "..");
}

static void put_frame(const struct picture *p, size_t i)
{
	const struct call_node *n = &p->t->v[i];
	const char *name = i ? calls_text(p->c, n->name) : "all";
	double whole = p->t->v[0].total, x = GAP + pixels(p, p->x[i]);
	double width = i ? pixels(p, n->total) : WIDTH - 2 * GAP;
	unsigned y = HEAD + (p->depth - n->depth) * ROW;
	char size[SIZE_TEXT];

	bytes_text(p->out, "<g><title>");
	put_escaped(p->out, name, strlen(name));
	bytes_printf(p->out, " (%s, %.2f %%)</title>", size_format(profile_round(n->total), size),
		     whole > 0 ? n->total * 100 / whole : 100);
	bytes_printf(p->out, "<rect x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%d\" fill=\"", x, y,
		     width, ROW - 1);
	put_colour(p->out, name);
	bytes_printf(p->out, "\"/><text x=\"%.3f\" y=\"%u\">", x + 3, y + ROW - 4);
	put_label(p->out, name, width);
	bytes_text(p->out, "</text></g>\n");
}

static bool is_drawn(const struct picture *p, size_t i)
{
	return i == 0 || (p->t->v[i].total > 0 && p->t->v[i].total >= p->least);
}

/* Where each frame begins, and how narrow one may be so that not too many are left. */
static void lay_out(struct picture *p)
{
	const struct call_node *v = p->t->v;
	size_t n;

	for (size_t i = 0; i < p->t->n; i++) {
		double at = p->x[i];

		for (uint32_t k = v[i].child; k; k = v[k].next) {
			p->x[k] = at;
			at += v[k].total;
		}
	}
	p->least = v[0].total * NARROW;
	do {
		p->depth = 0;
		n = 0;
		for (size_t i = 0; i < p->t->n; i++) {
			if (!is_drawn(p, i))
				continue;
			n++;
			p->depth = v[i].depth > p->depth ? v[i].depth : p->depth;
		}
		p->left_out = p->t->n - n;
		if (n > FLAME_FRAMES)
			p->least *= 2;
	} while (n > FLAME_FRAMES);
}

/* ---- all of it */

static void put_head(const struct picture *p, const char *title, unsigned height)
{
	struct bytes *out = p->out;

	bytes_printf(out,
		     "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" "
		     "height=\"%u\" viewBox=\"0 0 %.0f %u\">\n<style>",
		     WIDTH, height, WIDTH, height);
	bytes_text(out, "/*<![CDATA[*/");
	bytes_text(out, style);
	bytes_text(out, "/*]]>*/</style>\n<script>//<![CDATA[\n");
	bytes_text(out, script);
	bytes_printf(out,
		     "//]]></script>\n"
		     "<rect width=\"%.0f\" height=\"%u\" fill=\"#f8f8f8\"/>\n"
		     "<text id=\"title\" x=\"%.0f\" y=\"24\">",
		     WIDTH, height, WIDTH / 2);
	put_escaped(out, title, strlen(title));
	bytes_printf(out,
		     "</text>\n<text id=\"reset\" x=\"%.0f\" y=\"24\">Reset zoom</text>\n"
		     "<text id=\"search\" x=\"%.0f\" y=\"24\">Search</text>\n",
		     GAP, WIDTH - GAP);
}

static void put_foot(const struct picture *p, unsigned height)
{
	char least[SIZE_TEXT];

	bytes_printf(p->out,
		     "<text id=\"details\" x=\"%.0f\" y=\"%u\"> </text>\n"
		     "<text id=\"matched\" x=\"%.0f\" y=\"%u\"> </text>\n",
		     GAP, height - 14, WIDTH - GAP, height - 14);
	if (p->left_out)
		bytes_printf(p->out,
			     "<text x=\"%.0f\" y=\"44\">%zu frames of less than %s are not "
			     "drawn</text>\n",
			     GAP, p->left_out, size_format(profile_round(p->least), least));
	bytes_text(p->out, "</svg>\n");
}

int flame_svg(const struct calls *c, const struct call_tree *t, const char *title,
	      struct bytes *out)
{
	struct picture p = { .c = c, .t = t, .out = out };
	unsigned height;

	p.x = calloc(t->n, sizeof(*p.x));
	if (!p.x)
		return -ENOMEM;
	lay_out(&p);
	height = HEAD + (p.depth + 1) * ROW + FOOT;
	put_head(&p, title, height);
	bytes_text(out, "<g id=\"frames\">\n");
	for (size_t i = 0; i < t->n; i++)
		if (is_drawn(&p, i))
			put_frame(&p, i);
	bytes_text(out, "</g>\n");
	put_foot(&p, height);
	free(p.x);
	return out->failed ? -ENOMEM : 0;
}
