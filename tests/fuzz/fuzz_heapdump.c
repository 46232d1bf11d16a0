// SPDX-License-Identifier: GPL-3.0-or-later
/* A heap profile of anybody's, and all that is made of it. */
#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/call_tree.h"
#include "../../agent/flame.h"
#include "../../agent/pprof.h"
#include "../../agent/profile_top.h"
#include "fuzz.h"

const char fuzz_name[] = "heapdump";

/* Some addresses have names, as those of a hostile file may be. */
static size_t find(void *arg, uint64_t pc, struct symbol_frame *out, size_t max)
{
	static const char *const names[] = { "main",	  "malloc",	"a<b>&\"c\"::f(int)",
					     "_ZN1a1bEi", "]]>;--\x1b", "" };
	size_t n = (size_t)(pc / 16 % 4), i;

	(void)arg;
	for (i = 0; i < n && i < max; i++)
		out[i] = (struct symbol_frame){ .name = names[(pc + i) % 6],
						.file = pc & 1 ? "x\n.c" : NULL,
						.line = (unsigned)pc };
	return i;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * (fabs(a) + fabs(b)) + 1e-6;
}

static void check_profile(const struct profile *p)
{
	FUZZ_CHECK(isfinite(p->total.live_bytes) && isfinite(p->total.all_objects));
	for (size_t i = 0; i < p->stacks; i++) {
		FUZZ_CHECK(p->stack[i].depth > 0 && p->stack[i].depth <= PROFILE_DEPTH);
		FUZZ_CHECK(p->stack[i].n.live_bytes >= 0);
	}
	for (size_t i = 0; i < p->maps; i++) {
		FUZZ_CHECK(p->map[i].start < p->map[i].end);
		FUZZ_CHECK(i == 0 || p->map[i - 1].end <= p->map[i].start);
		FUZZ_CHECK(profile_map_find(p, p->map[i].end - 1) == &p->map[i]);
	}
	for (size_t i = 0; i < p->names; i++)
		FUZZ_CHECK(profile_names_find(p, p->name[i].pc) == p->name[i].names);
}

static void check_top(const struct calls *c)
{
	struct bytes out = { .v = NULL };
	struct profile_top t;
	struct profile_change x;
	double sum = 0;

	FUZZ_CHECK(profile_top_make(c, c->stacks % 2, &t) == 0);
	for (size_t i = 0; i < t.rows; i++) {
		sum += t.row[i].flat.live_bytes;
		FUZZ_CHECK(t.row[i].cum_bytes <= c->profile->total.live_bytes * (1 + 1e-6));
		fuzz_printable(t.row[i].symbol, strlen(t.row[i].symbol), "");
	}
	FUZZ_CHECK(near(sum, c->profile->total.live_bytes));
	profile_top_text(&t, c->profile, &out);
	fuzz_printable(out.v, out.len, "\n");
	bytes_free(&out);
	profile_top_free(&t);
	FUZZ_CHECK(profile_change_make(c, c, &x) == 0 && x.rows == 0);
	profile_change_free(&x);
}

static void check_xml(const struct bytes *svg)
{
	XML_Parser x = XML_ParserCreate(NULL);

	FUZZ_CHECK(x && XML_Parse(x, svg->v, (int)svg->len, 1) == XML_STATUS_OK);
	XML_ParserFree(x);
}

static void check_tree(const struct calls *c)
{
	struct bytes out = { .v = NULL };
	struct call_tree t;

	FUZZ_CHECK(call_tree_make(c, &t) == 0);
	FUZZ_CHECK(near(t.v[0].total, c->profile->total.live_bytes));
	call_tree_folded(c, &t, &out);
	fuzz_printable(out.v, out.len, "\n");
	bytes_free(&out);
	FUZZ_CHECK(flame_svg(c, &t, "\x01<&>\xff", &out) == 0);
	fuzz_printable(out.v, out.len, "\n\t");
	check_xml(&out);
	bytes_free(&out);
	call_tree_free(&t);
}

static const char *id_of(void *arg, size_t map)
{
	const char *id = ((const struct profile *)arg)->map[map].build_id;

	FUZZ_CHECK(!id || (*id && strspn(id, "0123456789abcdef") == strlen(id)));
	return id;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct call_source source = { .find = size % 3 ? find : NULL,
				      .names = (enum call_names)(size % 3) };
	char *text = fuzz_text(data, size);
	struct bytes out = { .v = NULL };
	struct profile *p;
	struct calls *c;
	struct diag d;

	diag_clear(&d);
	if (profile_parse(text, size, &p, &d)) {
		fuzz_diag(&d);
		free(text);
		return 0;
	}
	free(text); /* nothing of it is needed any more */
	check_profile(p);
	FUZZ_CHECK(calls_make(p, &source, &c) == 0);
	FUZZ_CHECK(c->stacks == p->stacks);
	check_top(c);
	check_tree(c);
	FUZZ_CHECK(pprof_message(c, NULL, &out) == 0);
	bytes_free(&out);
	calls_symbol_section(c, id_of, p, &out);
	fuzz_printable(out.v, out.len, "\n");
	bytes_free(&out);
	calls_free(c);
	profile_free(p);
	return 0;
}
