// SPDX-License-Identifier: GPL-3.0-or-later
/* The message is taken apart by a reader of its own, and held against the rules that pprof checks.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../../agent/pprof.h"
#include "some_profile.h"

/* ---- protocol buffers */

struct in {
	const unsigned char *at, *end;
};
struct field {
	unsigned number;
	uint64_t v;   /* a varint */
	struct in in; /* or these bytes */
};

static uint64_t varint(struct in *in)
{
	uint64_t v = 0;
	unsigned shift = 0;

	do {
		cr_assert(in->at < in->end && shift < 64);
		v |= (uint64_t)(*in->at & 0x7f) << shift;
		shift += 7;
	} while (*in->at++ & 0x80);
	return v;
}

static bool next(struct in *in, struct field *f)
{
	uint64_t key;

	if (in->at == in->end)
		return false;
	key = varint(in);
	*f = (struct field){ .number = (unsigned)(key >> 3) };
	cr_assert(f->number > 0);
	f->v = varint(in);
	if ((key & 7) == 0)
		return true;
	cr_assert_eq(key & 7, 2u);
	cr_assert(f->v <= (uint64_t)(in->end - in->at));
	f->in = (struct in){ in->at, in->at + f->v };
	in->at += f->v;
	return true;
}

/* ---- what of it is wanted */

#define MOST 32
struct read {
	char text[MOST * 2][100];
	size_t texts;
	uint64_t type[4][2], period_type[2];
	size_t types;
	uint64_t period, default_type, time;
	struct sample {
		uint64_t location[8], value[4], label[4];
		size_t locations, values;
	} sample[MOST];
	size_t samples;
	uint64_t mapping[MOST][7], function[MOST][5];
	struct location {
		uint64_t v[4], function[4], line[4];
		size_t lines;
	} location[MOST];
	size_t mappings, functions, locations;
};

static void numbers(struct in in, uint64_t *v, size_t n)
{
	struct field f;

	while (next(&in, &f))
		if (f.number < n)
			v[f.number] = f.v;
}

static void read_sample(struct in in, struct sample *s)
{
	struct field f;

	while (next(&in, &f)) {
		if (f.number == 1)
			while (f.in.at < f.in.end)
				s->location[s->locations++] = varint(&f.in);
		else if (f.number == 2)
			while (f.in.at < f.in.end)
				s->value[s->values++] = varint(&f.in);
		else if (f.number == 3)
			numbers(f.in, s->label, 4);
	}
}

static void read_location(struct in in, struct location *l)
{
	struct field f;

	while (next(&in, &f)) {
		uint64_t v[3] = { 0 };

		if (f.number != 4) {
			l->v[f.number] = f.v;
			continue;
		}
		numbers(f.in, v, 3);
		l->function[l->lines] = v[1];
		l->line[l->lines++] = v[2];
	}
}

static void read_message(const void *data, size_t len, struct read *r)
{
	struct in in = { data, (const unsigned char *)data + len };
	struct field f;

	memset(r, 0, sizeof(*r));
	while (next(&in, &f)) {
		uint64_t v[3] = { 0 };

		if (f.number == 1 || f.number == 11)
			numbers(f.in, v, 3);
		if (f.number == 1)
			memcpy(r->type[r->types++], v + 1, sizeof(r->type[0]));
		else if (f.number == 11)
			memcpy(r->period_type, v + 1, sizeof(r->period_type));
		else if (f.number == 2)
			read_sample(f.in, &r->sample[r->samples++]);
		else if (f.number == 3)
			numbers(f.in, r->mapping[r->mappings++], 7);
		else if (f.number == 4)
			read_location(f.in, &r->location[r->locations++]);
		else if (f.number == 5)
			numbers(f.in, r->function[r->functions++], 5);
		else if (f.number == 6)
			memcpy(r->text[r->texts++], f.in.at, (size_t)(f.in.end - f.in.at));
		else if (f.number == 9)
			r->time = f.v;
		else if (f.number == 12)
			r->period = f.v;
		else if (f.number == 14)
			r->default_type = f.v;
		else
			cr_assert_fail("field %u", f.number);
	}
}

/* Ids are not zero and there once, and every reference leads somewhere. */
static void check(const struct read *r)
{
	cr_assert(r->types > 0 && r->texts > 0);
	cr_assert_str_eq(r->text[0], "");
	for (size_t i = 0; i < r->samples; i++) {
		cr_assert_eq(r->sample[i].values, r->types);
		cr_assert(r->sample[i].locations > 0);
		for (size_t k = 0; k < r->sample[i].locations; k++)
			cr_assert(r->sample[i].location[k] - 1 < r->locations);
	}
	for (size_t i = 0; i < r->mappings; i++)
		cr_assert_eq(r->mapping[i][1], i + 1);
	for (size_t i = 0; i < r->functions; i++) {
		cr_assert_eq(r->function[i][1], i + 1);
		for (int k = 2; k < 5; k++)
			cr_assert(r->function[i][k] < r->texts);
	}
	for (size_t i = 0; i < r->locations; i++) {
		cr_assert_eq(r->location[i].v[1], i + 1);
		cr_assert(r->location[i].v[2] <= r->mappings);
		for (size_t k = 0; k < r->location[i].lines; k++)
			cr_assert(r->location[i].function[k] - 1 < r->functions);
	}
}

static void encode(const char *text, const struct pprof_extra *extra, struct read *r)
{
	struct profile *p;
	struct calls *c = some_calls(text, CALL_NAMES_BRIEF, &p);
	struct bytes out = { .v = NULL };

	cr_assert_eq(pprof_message(c, extra, &out), 0);
	read_message(out.v, out.len, r);
	check(r);
	bytes_free(&out);
	some_free(c, p);
}

/* ---- tests */

Test(pprof, head)
{
	struct pprof_extra extra = { .time_ns = 1234567890123456789 };
	struct read r;

	encode(NULL, &extra, &r);
	cr_assert_eq(r.types, 2u);
	cr_assert_str_eq(r.text[r.type[0][0]], "inuse_objects");
	cr_assert_str_eq(r.text[r.type[0][1]], "count");
	cr_assert_str_eq(r.text[r.type[1][0]], "inuse_space");
	cr_assert_str_eq(r.text[r.type[1][1]], "bytes");
	cr_assert_str_eq(r.text[r.period_type[0]], "space");
	cr_assert_str_eq(r.text[r.period_type[1]], "bytes");
	cr_assert_str_eq(r.text[r.default_type], "inuse_space");
	cr_assert_eq(r.period, 1u);
	cr_assert_eq(r.time, 1234567890123456789u);
}

Test(pprof, samples)
{
	struct read r;
	const struct sample *s = &r.sample[2]; /* b < b < main */

	encode(NULL, NULL, &r);
	cr_assert_eq(r.samples, 5u);
	cr_assert_eq(s->locations, 3u);
	cr_assert_eq(s->value[0], 4u);
	cr_assert_eq(s->value[1], 400u);
	cr_assert_str_eq(r.text[s->label[1]], "bytes");
	cr_assert_eq(s->label[3], 100u);
	cr_assert_eq(r.location[s->location[0] - 1].v[3], 0x1230u); /* not where it returns to */
}

Test(pprof, locations)
{
	struct read r;
	const struct location *l;
	const uint64_t *f;

	encode(NULL, NULL, &r);
	l = &r.location[r.sample[3].location[1] - 1]; /* helper, inlined into main */
	cr_assert_eq(l->lines, 2u);
	f = r.function[l->function[0] - 1];
	cr_assert_str_eq(r.text[f[2]], "helper");
	cr_assert_str_eq(r.text[f[4]], "src/prog&ram.c");
	cr_assert_eq(l->line[0], 9u);
	f = r.function[l->function[1] - 1];
	cr_assert_str_eq(r.text[f[2]], "main");
	/* what has no name is left to whoever reads it, by its mapping */
	l = &r.location[r.sample[3].location[0] - 1];
	cr_assert_eq(l->lines, 0u);
	cr_assert_eq(l->v[3], 0x2000u);
	cr_assert_str_eq(r.text[r.mapping[l->v[2] - 1][5]], "/lib/libstripped.so.1");
}

static const char *build_id(void *arg, size_t map)
{
	return map == 1 ? arg : NULL;
}

Test(pprof, mappings)
{
	char id[] = "00ff12";
	struct pprof_extra extra = { .build_id = build_id, .arg = id };
	struct read r;

	encode(NULL, &extra, &r);
	cr_assert_eq(r.mappings, 2u);
	cr_assert_eq(r.mapping[1][2], 0x2000u);
	cr_assert_eq(r.mapping[1][3], 0x3000u);
	cr_assert_eq(r.mapping[1][4], 0x5000u);
	cr_assert_str_eq(r.text[r.mapping[1][6]], "00ff12");
	cr_assert_str_eq(r.text[r.mapping[0][6]], "");
}

Test(pprof, with_what_was_freed)
{
	struct read r;

	encode("heap_v2/1\n@ 0x1111 0x1311\n  t*: 1: 100 [7: 700]\n", NULL, &r);
	cr_assert_eq(r.types, 4u);
	cr_assert_str_eq(r.text[r.type[0][0]], "alloc_objects");
	cr_assert_str_eq(r.text[r.type[1][0]], "alloc_space");
	cr_assert_str_eq(r.text[r.type[3][0]], "inuse_space");
	cr_assert_eq(r.sample[0].value[0], 7u);
	cr_assert_eq(r.sample[0].value[1], 700u);
	cr_assert_eq(r.sample[0].value[3], 100u);
}

Test(pprof, compressed)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	struct bytes message = { .v = NULL };
	unsigned char *gz, back[8192] = { 0 };
	z_stream z = { .avail_out = sizeof(back), .next_out = back };
	size_t len;

	cr_assert_eq(pprof_message(c, NULL, &message), 0);
	cr_assert_eq(pprof_encode(c, NULL, &gz, &len), 0);
	cr_assert(gz[0] == 0x1f && gz[1] == 0x8b);
	z.next_in = gz;
	z.avail_in = (unsigned)len;
	cr_assert_eq(inflateInit2(&z, 15 + 16), Z_OK);
	cr_assert_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	cr_assert_eq(z.avail_in, 0u);
	cr_assert_eq(z.total_out, message.len);
	cr_assert(memcmp(back, message.v, message.len) == 0);
	inflateEnd(&z);
	free(gz);
	bytes_free(&message);
	some_free(c, p);
}
