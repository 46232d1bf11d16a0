// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_scan.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/elf_range.h"
#include "symbol_names.h"

#define TABLES	     8
#define ALIASES	     4
#define PIECE	     4096U /* symbols read at a time */
#define SECTIONS_MAX 1024U
#define BUCKETS_MAX  ((size_t)1 << 22)

/* A function that covers some of the addresses, with its names. */
struct cover {
	uint64_t start, end;
	uint64_t name[ALIASES]; /* see symbol_names.h */
	uint8_t names;		/* 0: none */
	uint8_t rank;
};

/* A label without a size. */
struct label {
	uint64_t start;
	uint64_t name;
	uint8_t rank; /* 0: none */
};

struct symbol_scan {
	const uint64_t *at;
	size_t n;
	/*
	 * A segment tree: node i covers what 2i and 2i + 1 cover, address k is node n + k. A symbol
	 * is put into the few nodes that make up its range, so that files in which all symbols
	 * cover all addresses cost no more than their size.
	 */
	struct cover *tree;
	struct label *label; /* the last one that is before at[k], but not before at[k - 1] */
	uint64_t *ended;     /* the same for the ends of symbols */
	uint32_t *bucket;    /* the first address whose bucket is not below */
	size_t buckets;
	unsigned shift;
	struct symbol_strings table[TABLES];
	size_t tables;
	struct elf_range *code; /* sections of the first file that has some */
	size_t codes;
};

static int buckets_make(struct symbol_scan *s)
{
	uint64_t span = s->at[s->n - 1] - s->at[0];
	size_t want = 4 * s->n < BUCKETS_MAX ? 4 * s->n : BUCKETS_MAX, i, k = 0;

	while (span >> s->shift >= want)
		s->shift++;
	s->buckets = (size_t)(span >> s->shift) + 1;
	s->bucket = malloc((s->buckets + 1) * sizeof(*s->bucket));
	if (!s->bucket)
		return -ENOMEM;
	for (i = 0; i < s->buckets; i++) {
		while (k < s->n && (s->at[k] - s->at[0]) >> s->shift < i)
			k++;
		s->bucket[i] = (uint32_t)k;
	}
	s->bucket[s->buckets] = (uint32_t)s->n;
	return 0;
}

int symbol_scan_new(const uint64_t *at, size_t n, struct symbol_scan **out)
{
	struct symbol_scan *s;

	if (n >= UINT32_MAX / 2)
		return -E2BIG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->at = at;
	s->n = n;
	s->tree = calloc(2 * n + 1, sizeof(*s->tree));
	s->label = calloc(n + 1, sizeof(*s->label));
	s->ended = calloc(n + 1, sizeof(*s->ended));
	s->code = calloc(SECTIONS_MAX, sizeof(*s->code));
	if (!s->tree || !s->label || !s->ended || !s->code || (n && buckets_make(s))) {
		symbol_scan_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void symbol_scan_free(struct symbol_scan *s)
{
	if (!s)
		return;
	free(s->tree);
	free(s->label);
	free(s->ended);
	free(s->bucket);
	free(s->code);
	free(s);
}

/* The first address that is not below v; n if there is none. */
static size_t lower(const struct symbol_scan *s, uint64_t v)
{
	size_t lo, hi, mid;

	if (v <= s->at[0])
		return 0;
	if (v > s->at[s->n - 1])
		return s->n;
	mid = (size_t)((v - s->at[0]) >> s->shift);
	lo = s->bucket[mid];
	hi = s->bucket[mid + 1];
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (s->at[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The innermost: it begins last, and of those it ends first. */
static void cover_take(struct cover *have, const struct cover *c)
{
	if (have->names) {
		if (c->start != have->start ? c->start < have->start : c->end > have->end)
			return;
		if (c->start == have->start && c->end == have->end && c->rank <= have->rank) {
			if (c->rank == have->rank && have->names < ALIASES)
				have->name[have->names++] = c->name[0];
			return;
		}
	}
	*have = *c;
}

static void put_cover(struct symbol_scan *s, size_t from, size_t to, const struct cover *c)
{
	size_t l = from + s->n, r = to + s->n;

	for (; l < r; l /= 2, r /= 2) {
		if (l & 1)
			cover_take(&s->tree[l++], c);
		if (r & 1)
			cover_take(&s->tree[--r], c);
	}
}

static void put_label(struct symbol_scan *s, size_t i, const struct label *l)
{
	struct label *have = &s->label[i];

	if (have->rank &&
	    (l->start < have->start || (l->start == have->start && l->rank <= have->rank)))
		return;
	*have = *l;
}

static bool is_code(const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	if (!sym->st_name || sym->st_shndx == SHN_UNDEF)
		return false;
	if (type == STT_NOTYPE)
		return sym->st_shndx != SHN_ABS;
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static void take_symbol(struct symbol_scan *s, size_t table, const Elf64_Sym *sym)
{
	uint64_t name = symbol_name(table, sym->st_name), start = sym->st_value, end;
	bool local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL;
	bool typed = ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE;
	uint8_t rank = (uint8_t)(1 + 2 * !local + typed);
	size_t i, k;

	if (!is_code(sym) || sym->st_size > UINT64_MAX - start)
		return;
	i = lower(s, start);
	if (i == s->n)
		return;
	if (!sym->st_size) {
		put_label(s, i, &(struct label){ start, name, rank });
		return;
	}
	end = start + sym->st_size;
	k = i;
	if (s->at[i] < end) {
		k = lower(s, end);
		put_cover(
			s, i, k,
			&(struct cover){ start, end, .name = { name }, .names = 1, .rank = rank });
	}
	if (k < s->n && s->ended[k] < end)
		s->ended[k] = end;
}

static int scan_pieces(struct symbol_scan *s, size_t table, const struct elf_table *t,
		       struct elf_file *e)
{
	Elf64_Sym *buf = malloc(PIECE * sizeof(*buf));
	uint64_t at = 0, left = t->sym.size, len;
	int err = 0;
	size_t i;

	if (!buf)
		return -ENOMEM;
	while (left && !err) {
		len = left < PIECE * sizeof(*buf) ? left : PIECE * sizeof(*buf);
		err = elf_file_pread(e, t->sym.offset + at, buf, (size_t)len);
		for (i = 0; !err && i < len / sizeof(*buf); i++)
			take_symbol(s, table, &buf[i]);
		at += len;
		left -= len;
	}
	free(buf);
	return err;
}

int symbol_scan_table(struct symbol_scan *s, struct elf_file *e, bool dynamic)
{
	struct elf_table t;
	size_t table = s->tables;
	int err = elf_file_table(e, dynamic, &t);

	if (err)
		return err;
	if (table == TABLES)
		return -E2BIG;
	if (!s->codes)
		s->codes = elf_file_code_sections(e, s->code, SECTIONS_MAX);
	s->table[s->tables++] =
		(struct symbol_strings){ .e = e, .str = t.str, .versions = !dynamic };
	return s->n ? scan_pieces(s, table, &t, e) : 0;
}

static void cover_at(const struct symbol_scan *s, size_t i, struct cover *out)
{
	size_t node = s->n + i;

	*out = (struct cover){ 0 };
	/* One symbol is in one of these nodes at most, so that names come together in put_cover. */
	for (; node; node /= 2)
		if (s->tree[node].names)
			cover_take(out, &s->tree[node]);
}

/* Sections do not overlap in what linkers make; where they do, the first that fits is enough. */
static bool same_section(const struct symbol_scan *s, uint64_t a, uint64_t b)
{
	size_t i;

	for (i = 0; i < s->codes && s->code[i].offset <= a; i++)
		if (a - s->code[i].offset < s->code[i].size)
			return b - s->code[i].offset < s->code[i].size;
	return false;
}

/* What at[i] lies in; none: out->names is 0. */
static void decide(const struct symbol_scan *s, size_t i, const struct label *near, uint64_t ended,
		   struct cover *out)
{
	cover_at(s, i, out);
	if (!out->names && near->rank && near->start >= ended &&
	    same_section(s, near->start, s->at[i]))
		*out = (struct cover){ near->start, 0, .name = { near->name }, .names = 1 };
}

static bool same_cover(const struct cover *a, const struct cover *b)
{
	return a->names && b->names && a->start == b->start && a->end == b->end &&
	       a->name[0] == b->name[0];
}

/* Stands for the name of the hit before. */
static const char same_name[] = "";

/* The names to be read, each with the hit it is for; *n of them. */
static struct symbol_wanted *names_wanted(const struct symbol_scan *s, struct symbol_hit *hit,
					  size_t *n)
{
	struct symbol_wanted *v = calloc(ALIASES * s->n + 1, sizeof(*v));
	struct label near = { 0 };
	uint64_t ended = 0;
	struct cover c, before = { 0 };
	size_t i, k;

	*n = 0;
	for (i = 0; v && i < s->n; i++) {
		if (s->label[i].rank)
			near = s->label[i];
		if (s->ended[i] > ended)
			ended = s->ended[i];
		decide(s, i, &near, ended, &c);
		hit[i] = (struct symbol_hit){ .start = c.start };
		if (same_cover(&c, &before))
			hit[i].name = same_name;
		else
			for (k = 0; k < c.names; k++)
				v[(*n)++] = (struct symbol_wanted){ c.name[k], (uint32_t)i };
		before = c;
	}
	return v;
}

int symbol_scan_end(struct symbol_scan *s, struct names *names, struct symbol_hit *hit)
{
	struct symbol_wanted *v;
	size_t n, i;
	int err;

	v = names_wanted(s, hit, &n);
	if (!v)
		return -ENOMEM;
	err = symbol_names_read(s->table, v, n, names, hit);
	for (i = 1; !err && i < s->n; i++)
		if (hit[i].name == same_name)
			hit[i].name = hit[i - 1].name;
	free(v);
	return err;
}
