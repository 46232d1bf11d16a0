// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile_parts.h"

#define NEXT "give a dump of jemalloc's (prof.dump, `prof dump FILE`): it begins with heap_v2/"

/* ---- numbers */

void profile_unbias(uint64_t objects, uint64_t bytes, uint64_t period, double *objects_out,
		    double *bytes_out)
{
	double n = (double)objects, s = (double)bytes, k = 1;

	*objects_out = n;
	*bytes_out = objects ? s : 0;
	if (!objects || !bytes || period <= 1)
		return;
	k = -1 / expm1(-(s / n) / (double)period); /* 1 / (1 - exp(-z / R)), exact for small z */
	*objects_out = n * k;
	*bytes_out = s * k;
}

uint64_t profile_round(double v)
{
	if (!(v > 0))
		return 0;
	return v < 9.2e18 ? (uint64_t)(v + 0.5) : INT64_MAX;
}

/* ---- looking things up */

static int by_pc(const void *key, const void *at)
{
	uint64_t a = ((const struct profile_name *)key)->pc;
	uint64_t b = ((const struct profile_name *)at)->pc;

	return (a > b) - (a < b);
}

const char *profile_names_find(const struct profile *p, uint64_t pc)
{
	const struct profile_name key = { .pc = pc }, *found = NULL;

	if (p->names)
		found = bsearch(&key, p->name, p->names, sizeof(*p->name), by_pc);
	return found ? found->names : NULL;
}

const struct profile_map *profile_map_find(const struct profile *p, uint64_t pc)
{
	size_t low = 0, high = p->maps;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pc < p->map[mid].start)
			high = mid;
		else if (pc >= p->map[mid].end)
			low = mid + 1;
		else
			return &p->map[mid];
	}
	return NULL;
}

/* ---- the order of things, once all is read */

static int order_name(const void *a, const void *b)
{
	const struct profile_name *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return strcmp(x->names, y->names);
}

static int order_map(const void *a, const void *b)
{
	const struct profile_map *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static void sort_names(struct profile *p)
{
	size_t n = 0;

	if (p->names)
		qsort(p->name, p->names, sizeof(*p->name), order_name);
	for (size_t i = 0; i < p->names; i++)
		if (!n || p->name[i].pc != p->name[n - 1].pc)
			p->name[n++] = p->name[i];
	p->names = n;
}

static void sort_maps(struct profile *p)
{
	size_t n = 0;

	if (p->maps)
		qsort(p->map, p->maps, sizeof(*p->map), order_map);
	for (size_t i = 0; i < p->maps; i++)
		if (!n || p->map[i].start >= p->map[n - 1].end)
			p->map[n++] = p->map[i];
	p->maps = n;
}

static int order_id(const void *a, const void *b)
{
	const struct profile_id *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->build_id, y->build_id);
}

/* Both by address. */
static void give_ids(struct parser *x)
{
	size_t k = 0;

	if (x->ids)
		qsort(x->id, x->ids, sizeof(*x->id), order_id);
	for (size_t i = 0; i < x->p->maps; i++) {
		while (k < x->ids && x->id[k].start < x->p->map[i].start)
			k++;
		if (k < x->ids && x->id[k].start == x->p->map[i].start)
			x->p->map[i].build_id = x->id[k].build_id;
	}
}

static void add_up(struct profile *p)
{
	for (size_t i = 0; i < p->stacks; i++) {
		const struct profile_count *n = &p->stack[i].n;

		p->total.live_objects += n->live_objects;
		p->total.live_bytes += n->live_bytes;
		p->total.all_objects += n->all_objects;
		p->total.all_bytes += n->all_bytes;
	}
	p->has_accum = p->total.all_objects > 0;
}

/* ---- the beginning */

/* "heap profile: 1: 2 [ 3: 4] @ TYPE/PERIOD": what is behind the @. */
static bool old_header(struct scan h, struct profile *p, bool *known)
{
	const char *at;

	if (!scan_word(&h, "heap profile:"))
		return false;
	at = memchr(h.at, '@', scan_left(&h));
	h.at = at ? at + 1 : h.end;
	scan_blanks(&h);
	*known = true;
	if (scan_word(&h, "heapprofile"))
		p->sample_bytes = 1; /* each allocation was counted */
	else if (!scan_word(&h, "heap_v2/") || !scan_number(&h, 10, &p->sample_bytes))
		*known = false;
	return true;
}

static int read_header(struct parser *x, struct diag *d)
{
	struct scan h = { x->text.end, x->text.end };
	bool known = false;

	while (scan_line(&x->text, &h) && (h.at == h.end || *h.at == '%'))
		; /* comments of those who serve profiles by HTTP */
	x->one_line = old_header(h, x->p, &known);
	if (!x->one_line && scan_word(&h, "heap_v2/"))
		known = scan_number(&h, 10, &x->p->sample_bytes);
	if (!known)
		return diag_fail(d, -EINVAL, HM_USAGE, "no-profile", NEXT,
				 "this is no heap profile: it does not begin like one");
	if (x->p->sample_bytes == 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "profile-period", NEXT,
				 "the profile says that it samples each 0 bytes, which cannot be");
	return 0;
}

/* ---- all of it */

int profile_too_large(struct diag *d, size_t most, const char *what)
{
	return diag_fail(d, -E2BIG, HM_USAGE, "profile-too-large",
			 "sample less: a larger lg_prof_sample makes fewer stacks",
			 "the profile has more than %zu %s", most, what);
}

static int parse(struct parser *x, struct diag *d)
{
	struct scan first = x->text, line;
	int err = 0;

	if (scan_line(&first, &line) && scan_word(&line, "---") &&
	    (scan_blanks(&line), scan_word(&line, "symbol"))) {
		x->text = first;
		err = profile_read_symbols(x);
		first = x->text;
		/* "--- heap" */
		if (!err && scan_line(&first, &line) && scan_word(&line, "---"))
			x->text = first;
	}
	if (!err)
		err = read_header(x, d);
	if (err == -EINVAL)
		return err;
	if (!err)
		err = profile_read_stacks(x);
	if (!err)
		err = profile_read_maps(x);
	if (err == -E2BIG)
		return profile_too_large(d, x->most, x->what);
	return err ? diag_internal(d, err, "reading a heap profile") : 0;
}

int profile_parse(const char *data, size_t len, struct profile **out, struct diag *d)
{
	struct parser x = { .text = { data, data + len } };
	int err;

	*out = NULL;
	if (len > PROFILE_TEXT_MAX)
		return profile_too_large(d, PROFILE_TEXT_MAX >> 20, "MiB of text");
	x.p = calloc(1, sizeof(*x.p));
	if (x.p)
		x.p->pool = pool_new();
	if (!x.p || !x.p->pool) {
		free(x.p);
		return diag_internal(d, -ENOMEM, "reading a heap profile");
	}
	err = parse(&x, d);
	if (err) {
		profile_free(x.p);
	} else {
		sort_names(x.p);
		sort_maps(x.p);
		give_ids(&x);
		add_up(x.p);
		*out = x.p;
	}
	free(x.id);
	return err;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	free(p->stack);
	free(p->map);
	free(p->name);
	pool_free(p->pool);
	free(p);
}
