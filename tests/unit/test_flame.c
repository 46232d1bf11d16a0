// SPDX-License-Identifier: GPL-3.0-or-later
/* The picture is read as XML, with expat. */
#include <criterion/criterion.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/flame.h"
#include "some_profile.h"

struct seen {
	char path[200]; /* of open elements */
	char title[300], wanted[300];
	size_t frames;
	double x, width, y; /* of the rect behind the title that is wanted */
	bool mine, found;
};

static const char *attribute(const char **v, const char *name)
{
	for (; *v; v += 2)
		if (strcmp(v[0], name) == 0)
			return v[1];
	return "";
}

static void begin(void *arg, const char *name, const char **v)
{
	struct seen *s = arg;

	cr_assert_lt(strlen(s->path) + strlen(name) + 2, sizeof(s->path));
	strcat(strcat(s->path, "/"), name);
	if (strcmp(s->path, "/svg/g/g") == 0)
		s->frames++;
	if (strcmp(name, "title") == 0)
		s->title[0] = '\0';
	if (strcmp(name, "rect") == 0 && s->mine) {
		s->x = strtod(attribute(v, "x"), NULL);
		s->y = strtod(attribute(v, "y"), NULL);
		s->width = strtod(attribute(v, "width"), NULL);
		s->found = true;
		s->mine = false;
	}
	/* nothing is fetched from elsewhere */
	for (; *v; v += 2)
		cr_assert(strcmp(v[0], "xmlns") == 0 || !strstr(v[1], "//"), "%s", v[1]);
}

static void end(void *arg, const char *name)
{
	struct seen *s = arg;

	if (strcmp(name, "title") == 0)
		s->mine = strcmp(s->title, s->wanted) == 0;
	*strrchr(s->path, '/') = '\0';
}

static void text(void *arg, const char *at, int len)
{
	struct seen *s = arg;
	size_t n = strlen(s->title);

	if (strcmp(s->path, "/svg/g/g/title") == 0 && n + (size_t)len < sizeof(s->title)) {
		memcpy(s->title + n, at, (size_t)len);
		s->title[n + (size_t)len] = '\0';
	}
}

static void read_svg(const struct bytes *svg, const char *wanted, struct seen *s)
{
	XML_Parser x = XML_ParserCreate(NULL);

	memset(s, 0, sizeof(*s));
	snprintf(s->wanted, sizeof(s->wanted), "%s", wanted);
	XML_SetUserData(x, s);
	XML_SetElementHandler(x, begin, end);
	XML_SetCharacterDataHandler(x, text);
	cr_assert_eq(XML_Parse(x, svg->v, (int)svg->len, 1), XML_STATUS_OK, "line %lu: %s",
		     XML_GetCurrentLineNumber(x), XML_ErrorString(XML_GetErrorCode(x)));
	XML_ParserFree(x);
}

static void draw(const char *profile, const char *title, struct bytes *out)
{
	struct profile *p;
	struct calls *c = some_calls(profile, CALL_NAMES_FULL, &p);
	struct call_tree t;

	*out = (struct bytes){ .v = NULL };
	cr_assert_eq(call_tree_make(c, &t), 0);
	cr_assert_eq(flame_svg(c, &t, title, out), 0);
	call_tree_free(&t);
	some_free(c, p);
}

/* Widths are in proportion to bytes, and callees stand on their callers. */
Test(flame, frames)
{
	struct bytes svg;
	struct seen all, a, caller;

	draw(NULL, "a title", &svg);
	read_svg(&svg, "all (758 B, 100.00 %)", &all);
	cr_assert_eq(all.frames, 9u); /* all, main, a, a;b, b, b;b, helper, the unknown, malloc */
	cr_assert(all.found);
	read_svg(&svg, "a (300 B, 39.58 %)", &a);
	cr_assert(a.found);
	read_svg(&svg, "main (750 B, 98.94 %)", &caller);
	cr_assert(caller.found);
	cr_assert_float_eq(a.width / all.width, 300.0 / 758, 1e-4);
	cr_assert_float_eq(caller.width / all.width, 750.0 / 758, 1e-4);
	cr_assert(a.x >= caller.x && a.x + a.width <= caller.x + caller.width + 0.01);
	cr_assert(a.y < caller.y && caller.y < all.y);
	bytes_free(&svg);
}

/* Names and titles are anybody's. */
Test(flame, hostile_names)
{
	static const char text[] =
		"--- symbol\n0x10 </title><script>alert(1)</script>&\"']]>\n---\n--- heap\n"
		"heap_v2/1\n@ 0x10\n  t*: 1: 5 [0: 0]\n";
	struct bytes svg;
	struct seen s;

	draw(text, "]]></text><script>\x01\xff&", &svg);
	read_svg(&svg, "</title><script>alert(1)</script>&\"']]> (5 B, 100.00 %)", &s);
	cr_assert(s.found);
	cr_assert_eq(s.frames, 2u);
	bytes_free(&svg);
}

Test(flame, nothing)
{
	struct bytes svg;
	struct seen s;

	draw("heap_v2/1\nMAPPED_LIBRARIES:\n", "nothing", &svg);
	read_svg(&svg, "all (0 B, 100.00 %)", &s);
	cr_assert(s.found);
	cr_assert_eq(s.frames, 1u);
	bytes_free(&svg);
}

/* More functions than can be looked at: the small ones are left out, and that is said. */
Test(flame, too_many_frames)
{
	struct bytes text = { .v = NULL }, svg;
	size_t many = FLAME_FRAMES * 2;
	struct seen s;

	bytes_text(&text, "heap_v2/1\n");
	for (size_t i = 0; i < many; i++)
		bytes_printf(&text, "@ 0x%zx\n t*: 1: %zu [0: 0]\n", 0x10000 + i, 1 + i / 64);
	bytes_char(&text, '\0');
	draw(text.v, "many", &svg);
	read_svg(&svg, "all", &s);
	cr_assert_leq(s.frames, FLAME_FRAMES);
	cr_assert_gt(s.frames, FLAME_FRAMES / 8);
	bytes_char(&svg, '\0');
	cr_assert_not_null(strstr(svg.v, "are not drawn"));
	bytes_free(&text);
	bytes_free(&svg);
}
