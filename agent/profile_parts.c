// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../inject/maps.h"
#include "array.h"

#define BUILD_ID_MAX 64	  /* bytes */
#define LINE	     8192 /* longer lines are no mappings: a path has 4096 bytes at most */

static const char *copy(struct parser *x, const char *text, size_t len)
{
	char *to = pool_take(x->p->pool, len + 1);

	if (to)
		memcpy(to, text, len); /* pool memory is zeroed */
	return to;
}

static int too_many(struct parser *x, size_t most, const char *what)
{
	x->most = most;
	x->what = what;
	return -E2BIG;
}

/* ---- symbols */

static int add_name(struct parser *x, uint64_t pc, const struct scan *names)
{
	struct profile *p = x->p;
	const char *text;
	void *v;

	if (p->names == PROFILE_NAMES_MAX)
		return too_many(x, PROFILE_NAMES_MAX, "names of addresses");
	v = array_room(p->name, &x->name_cap, p->names, sizeof(*p->name));
	if (!v)
		return -ENOMEM;
	p->name = v;
	text = copy(x, names->at, scan_left(names));
	if (!text)
		return -ENOMEM;
	p->name[p->names++] = (struct profile_name){ .pc = pc, .names = text };
	return 0;
}

/* "0xSTART HEX" behind "# build-id"; what is none is a comment. */
static int take_id(struct parser *x, struct scan *line)
{
	uint64_t start;
	size_t len;
	void *v;

	if (!scan_blanks(line) || !scan_number(line, 16, &start) || !scan_blanks(line))
		return 0;
	len = scan_left(line);
	if (!len || len > 2 * BUILD_ID_MAX || len % 2)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (!strchr("0123456789abcdef", line->at[i]) || !line->at[i])
			return 0;
	if (x->ids == PROFILE_MAPS_MAX)
		return too_many(x, PROFILE_MAPS_MAX, "build ids");
	v = array_room(x->id, &x->id_cap, x->ids, sizeof(*x->id));
	if (!v)
		return -ENOMEM;
	x->id = v;
	x->id[x->ids] = (struct profile_id){ start, copy(x, line->at, len) };
	return x->id[x->ids++].build_id ? 0 : -ENOMEM;
}

int profile_read_symbols(struct parser *x)
{
	struct scan line;
	uint64_t pc;
	int err = 0;

	while (!err && scan_line(&x->text, &line)) {
		if (scan_word(&line, "---"))
			return 0;
		if (scan_word(&line, "binary=")) {
			x->p->binary = copy(x, line.at, scan_left(&line));
			err = x->p->binary ? 0 : -ENOMEM;
		} else if (scan_word(&line, "# build-id")) {
			err = take_id(x, &line);
		} else if (scan_word(&line, "0x") && scan_number(&line, 16, &pc) &&
			   scan_blanks(&line) && scan_left(&line)) {
			err = add_name(x, pc, &line);
		}
	}
	return err;
}

/* ---- stacks */

/* A stack whose counts are being read. */
struct record {
	bool open; /* there is one */
	const uint64_t *pc;
	uint32_t depth;
	bool counted;		      /* there is a line for all threads together */
	unsigned threads;	      /* lines of single threads */
	struct profile_count all, by; /* all threads; the sum of single ones */
};

/* "N: BYTES [N: BYTES]": adds what they stand for. */
static bool take_counts(struct scan *s, uint64_t period, struct profile_count *sum)
{
	uint64_t v[4];
	double n, b;

	for (int i = 0; i < 4; i++) {
		scan_blanks(s);
		if (i == 2 && !scan_word(s, "["))
			return false;
		scan_blanks(s);
		if (!scan_number(s, 10, &v[i]) || !scan_word(s, i == 3 ? "]" : i % 2 ? "" : ":"))
			return false;
	}
	profile_unbias(v[0], v[1], period, &n, &b);
	sum->live_objects += n;
	sum->live_bytes += b;
	profile_unbias(v[2], v[3], period, &n, &b);
	sum->all_objects += n;
	sum->all_bytes += b;
	return true;
}

/* 0 with how many addresses follow and nothing else; -EINVAL. */
static int count_pcs(struct scan s, size_t *n)
{
	uint64_t pc;

	*n = 0;
	for (scan_blanks(&s); s.at < s.end; scan_blanks(&s)) {
		if (!scan_number(&s, 16, &pc) || ++*n > PROFILE_DEPTH)
			return -EINVAL;
	}
	return *n ? 0 : -EINVAL;
}

/* The addresses behind "@". -EINVAL where they are none. */
static int take_pcs(struct parser *x, struct scan s, struct record *r)
{
	uint64_t *pc;
	size_t n;
	int err = count_pcs(s, &n);

	if (err)
		return err;
	x->frames += n;
	if (x->frames > PROFILE_FRAMES_MAX)
		return too_many(x, PROFILE_FRAMES_MAX, "frames in its stacks");
	pc = pool_take(x->p->pool, n * sizeof(*pc));
	if (!pc)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		scan_blanks(&s);
		if (!scan_number(&s, 16, &pc[i]))
			return -EINVAL;
	}
	r->pc = pc;
	r->depth = (uint32_t)n;
	return 0;
}

static int add_stack(struct parser *x, const struct record *r)
{
	struct profile *p = x->p;
	void *v;

	if (p->stacks == PROFILE_STACKS_MAX)
		return too_many(x, PROFILE_STACKS_MAX, "stacks");
	v = array_room(p->stack, &x->stack_cap, p->stacks, sizeof(*p->stack));
	if (!v)
		return -ENOMEM;
	p->stack = v;
	p->stack[p->stacks++] = (struct profile_stack){
		.pc = r->pc,
		.depth = r->depth,
		.n = r->counted ? r->all : r->by,
	};
	return 0;
}

/* The record before the next one, or the last. */
static int end_record(struct parser *x, struct record *r, bool last)
{
	struct record done = *r;

	*r = (struct record){ .open = false };
	if (!done.open)
		return 0;
	if (done.counted || done.threads)
		return add_stack(x, &done);
	x->p->cut |= last;
	x->p->odd += !last;
	return 0;
}

static int begin_record(struct parser *x, const struct scan *pcs, struct record *r)
{
	int err = end_record(x, r, false);

	if (err)
		return err;
	err = take_pcs(x, *pcs, r);
	r->open = !err;
	if (err != -EINVAL)
		return err;
	x->p->odd++;
	return 0;
}

/* "t*: COUNTS", "t17: COUNTS". */
static void take_thread(struct parser *x, struct scan *line, struct record *r)
{
	uint64_t thread;
	bool all = scan_word(line, "*");

	if (!r->open)
		return; /* the totals before the first stack, or what belongs to no stack */
	if ((!all && !scan_number(line, 10, &thread)) || !scan_word(line, ":") ||
	    !take_counts(line, x->p->sample_bytes, all ? &r->all : &r->by)) {
		x->p->odd++;
		return;
	}
	if (all)
		r->counted = true;
	else
		r->threads++;
}

/* "COUNTS @ PC...": a record of its own. */
static int take_one_line(struct parser *x, struct scan *line)
{
	struct record r = { .open = true, .counted = true };
	int err;

	if (!take_counts(line, x->p->sample_bytes, &r.all) || !scan_blanks(line) ||
	    !scan_word(line, "@")) {
		x->p->odd++;
		return 0;
	}
	err = take_pcs(x, *line, &r);
	x->p->odd += err == -EINVAL;
	if (err)
		return err == -EINVAL ? 0 : err;
	return add_stack(x, &r);
}

int profile_read_stacks(struct parser *x)
{
	struct record r = { .open = false };
	struct scan line;
	int err = 0;

	while (!err && scan_line(&x->text, &line)) {
		if (scan_word(&line, "MAPPED_LIBRARIES:") || scan_word(&line, "--- Memory map:")) {
			x->mappings = true;
			break;
		}
		if (x->one_line && scan_left(&line))
			err = take_one_line(x, &line);
		else if (scan_word(&line, "@"))
			err = begin_record(x, &line, &r);
		else if (scan_word(&line, "t"))
			take_thread(x, &line, &r);
	}
	return err ? err : end_record(x, &r, true);
}

/* ---- mappings */

static int add_map(struct parser *x, const struct map *m)
{
	struct profile *p = x->p;
	void *v;

	if (m->start >= m->end || !m->name[0] || (m->name[0] != '/' && !(m->prot & PROT_EXEC)))
		return 0;
	if (p->maps == PROFILE_MAPS_MAX)
		return too_many(x, PROFILE_MAPS_MAX, "mappings");
	v = array_room(p->map, &x->map_cap, p->maps, sizeof(*p->map));
	if (!v)
		return -ENOMEM;
	p->map = v;
	p->map[p->maps] = (struct profile_map){
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = copy(x, m->name, strlen(m->name)),
		.inode = m->inode,
		.exec = m->prot & PROT_EXEC,
		.deleted = m->deleted,
	};
	if (!p->map[p->maps].path)
		return -ENOMEM;
	p->maps++;
	return 0;
}

int profile_read_maps(struct parser *x)
{
	char buf[LINE];
	struct scan line;
	struct map m;
	int err = 0;

	while (!err && scan_line(&x->text, &line)) {
		size_t len = scan_left(&line);

		if (!len || len >= sizeof(buf))
			continue;
		memcpy(buf, line.at, len);
		buf[len] = '\0';
		if (map_parse(buf, &m) == 0)
			err = add_map(x, &m);
	}
	x->p->cut |= !x->mappings && !x->p->names;
	return err;
}
