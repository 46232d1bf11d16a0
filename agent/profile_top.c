// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_top.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one profile */

/* By the number of a name. */
struct sums {
	struct top_row *row;
	size_t *seen;	/* number + 1 of the last stack that it was on */
	double *weight; /* of the address that file and line are from */
};

static void add_count(struct profile_count *sum, const struct profile_count *n)
{
	sum->live_objects += n->live_objects;
	sum->live_bytes += n->live_bytes;
	sum->all_objects += n->all_objects;
	sum->all_bytes += n->all_bytes;
}

static void add_stack(const struct calls *c, size_t number, struct sums *s)
{
	const struct call_stack *stack = &c->stack[number];

	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct call_site *site = &c->site[stack->site[i]];

		for (uint32_t k = 0; k < site->lines; k++) {
			uint32_t name = c->func[c->line[site->first + k].func].name;

			if (i == 0 && k == 0)
				add_count(&s->row[name].flat, stack->n);
			if (s->seen[name] == number + 1)
				continue;
			s->seen[name] = number + 1;
			s->row[name].cum_bytes += stack->n->live_bytes;
		}
	}
}

/* Of all addresses in a function, the one with most bytes below it says where it is. */
static int add_places(const struct calls *c, struct sums *s)
{
	double *bytes = calloc(c->sites + 1, sizeof(*bytes));

	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < c->stacks; i++)
		for (uint32_t k = 0; k < c->stack[i].depth; k++)
			bytes[c->stack[i].site[k]] += c->stack[i].n->live_bytes;
	for (size_t i = 0; i < c->sites; i++) {
		const struct call_site *site = &c->site[i];

		for (uint32_t k = 0; k < site->lines; k++) {
			const struct call_line *line = &c->line[site->first + k];
			const struct call_func *f = &c->func[line->func];

			if (bytes[i] <= s->weight[f->name])
				continue;
			s->weight[f->name] = bytes[i];
			s->row[f->name].pc = site->pc;
			s->row[f->name].at = k;
			if (!f->file)
				continue;
			s->row[f->name].file = calls_text(c, f->file);
			s->row[f->name].line = line->line;
		}
	}
	free(bytes);
	return 0;
}

static int by_name(const struct top_row *x, const struct top_row *y)
{
	return strcmp(x->symbol, y->symbol);
}

static int order_flat(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->flat.live_bytes != y->flat.live_bytes)
		return x->flat.live_bytes < y->flat.live_bytes ? 1 : -1;
	if (x->cum_bytes != y->cum_bytes)
		return x->cum_bytes < y->cum_bytes ? 1 : -1;
	return by_name(x, y);
}

static int order_cum(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->cum_bytes != y->cum_bytes)
		return x->cum_bytes < y->cum_bytes ? 1 : -1;
	return order_flat(a, b);
}

/* What has no live bytes is no row. */
static void keep_rows(const struct calls *c, struct profile_top *t)
{
	size_t n = 0;

	for (size_t i = 0; i < c->texts.n; i++) {
		struct top_row *row = &t->row[i];

		add_count(&t->total, &row->flat);
		if (row->cum_bytes <= 0)
			continue;
		row->symbol = calls_text(c, (uint32_t)i);
		if (!row->file)
			row->file = "";
		t->row[n++] = *row;
	}
	t->rows = n;
}

int profile_top_make(const struct calls *c, bool by_cum, struct profile_top *out)
{
	struct sums s = {
		.row = calloc(c->texts.n + 1, sizeof(*s.row)),
		.seen = calloc(c->texts.n + 1, sizeof(*s.seen)),
		.weight = calloc(c->texts.n + 1, sizeof(*s.weight)),
	};
	int err = s.row && s.seen && s.weight ? 0 : -ENOMEM;

	*out = (struct profile_top){ .row = s.row };
	for (size_t i = 0; i < c->stacks && !err; i++)
		add_stack(c, i, &s);
	if (!err)
		err = add_places(c, &s);
	free(s.seen);
	free(s.weight);
	if (err) {
		profile_top_free(out);
		return err;
	}
	keep_rows(c, out);
	if (out->rows)
		qsort(out->row, out->rows, sizeof(*out->row), by_cum ? order_cum : order_flat);
	return 0;
}

void profile_top_free(struct profile_top *t)
{
	free(t->row);
	*t = (struct profile_top){ .rows = 0 };
}

/* ---- two of them */

static int order_name(const void *a, const void *b)
{
	return by_name(a, b);
}

static int order_change(const void *a, const void *b)
{
	const struct change_row *x = a, *y = b;
	double dx = fabs(x->after_bytes - x->before_bytes);
	double dy = fabs(y->after_bytes - y->before_bytes);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	dx = fabs(x->cum_after_bytes - x->cum_before_bytes);
	dy = fabs(y->cum_after_bytes - y->cum_before_bytes);
	if (dx != dy)
		return dx < dy ? 1 : -1;
	return strcmp(x->symbol, y->symbol);
}

/* With all zeros for the side where it is not; now is the later one that is there. */
static void add_change(struct profile_change *out, const struct top_row *a, const struct top_row *b,
		       const struct top_row *now)
{
	struct change_row *row = &out->row[out->rows];

	*row = (struct change_row){
		.symbol = now->symbol,
		.file = now->file,
		.line = now->line,
		.before_bytes = a->flat.live_bytes,
		.before_objects = a->flat.live_objects,
		.cum_before_bytes = a->cum_bytes,
		.after_bytes = b->flat.live_bytes,
		.after_objects = b->flat.live_objects,
		.cum_after_bytes = b->cum_bytes,
	};
	if (fabs(row->after_bytes - row->before_bytes) >= 1 ||
	    fabs(row->cum_after_bytes - row->cum_before_bytes) >= 1)
		out->rows++;
}

static void merge(const struct profile_top *a, const struct profile_top *b,
		  struct profile_change *out)
{
	static const struct top_row none;
	size_t i = 0, k = 0;

	while (i < a->rows || k < b->rows) {
		int cmp = i == a->rows ? 1 : k == b->rows ? -1 : by_name(&a->row[i], &b->row[k]);

		add_change(out, cmp <= 0 ? &a->row[i] : &none, cmp >= 0 ? &b->row[k] : &none,
			   cmp >= 0 ? &b->row[k] : &a->row[i]);
		i += cmp <= 0;
		k += cmp >= 0;
	}
}

int profile_change_make(const struct calls *a, const struct calls *b, struct profile_change *out)
{
	struct profile_top x, y = { .rows = 0 };
	int err = profile_top_make(a, false, &x);

	*out = (struct profile_change){ .rows = 0 };
	if (!err)
		err = profile_top_make(b, false, &y);
	if (!err) {
		out->row = calloc(x.rows + y.rows + 1, sizeof(*out->row));
		err = out->row ? 0 : -ENOMEM;
	}
	if (!err) {
		if (x.rows)
			qsort(x.row, x.rows, sizeof(*x.row), order_name);
		if (y.rows)
			qsort(y.row, y.rows, sizeof(*y.row), order_name);
		out->before = x.total;
		out->after = y.total;
		merge(&x, &y, out);
		if (out->rows)
			qsort(out->row, out->rows, sizeof(*out->row), order_change);
	}
	profile_top_free(&x);
	profile_top_free(&y);
	return err;
}

void profile_change_free(struct profile_change *v)
{
	free(v->row);
	*v = (struct profile_change){ .rows = 0 };
}

/* ---- text */

static double share(double part, double whole)
{
	return whole > 0 ? part * 100 / whole : 0;
}

void profile_top_text(const struct profile_top *t, const struct profile *p, struct bytes *out)
{
	double sum = 0, whole = t->total.live_bytes;

	bytes_printf(out,
		     "total %" PRIu64 " bytes in %" PRIu64 " objects, sampled every %" PRIu64
		     " bytes, %zu stacks\n",
		     profile_round(whole), profile_round(t->total.live_objects), p->sample_bytes,
		     p->stacks);
	bytes_printf(out, "%14s %6s %6s %14s %6s %12s  %s\n", "flat", "flat%", "sum%", "cum",
		     "cum%", "objects", "function");
	for (size_t i = 0; i < t->rows; i++) {
		const struct top_row *r = &t->row[i];

		sum += r->flat.live_bytes;
		bytes_printf(
			out,
			"%14" PRIu64 " %5.1f%% %5.1f%% %14" PRIu64 " %5.1f%% %12" PRIu64 "  %s",
			profile_round(r->flat.live_bytes), share(r->flat.live_bytes, whole),
			share(sum, whole), profile_round(r->cum_bytes), share(r->cum_bytes, whole),
			profile_round(r->flat.live_objects), r->symbol);
		if (r->file[0])
			bytes_printf(out, " (%s:%u)", r->file, r->line);
		bytes_char(out, '\n');
	}
}
