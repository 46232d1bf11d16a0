// SPDX-License-Identifier: GPL-3.0-or-later
#include "calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "call_internal.h"
#include "call_text.h"
#include "demangle.h"

#define INLINED	 64   /* functions at one address; more are left out */
#define TEXT_MAX 4096 /* of a name; longer ones are cut */

/* What is only needed while it is made. */
struct making {
	struct calls *c;
	const struct call_source *source;
	struct pairs funcs, sites;
	size_t func_cap, line_cap, site_cap;
};

/* ---- texts */

static int add_text(struct calls *c, const char *text, uint32_t *number)
{
	char clean[TEXT_MAX];

	call_text_clean(text, clean, sizeof(clean));
	return texts_add(&c->texts, clean, number);
}

static int add_shown(struct making *m, const char *system, uint32_t *number)
{
	char shown[TEXT_MAX];
	bool brief = m->source->names == CALL_NAMES_BRIEF;

	if (m->source->names == CALL_NAMES_MANGLED)
		return add_text(m->c, system, number);
	/* a symbolised profile may have been demangled by somebody else */
	if (!demangle(system, brief, shown, sizeof(shown)) && brief)
		call_text_brief(shown);
	return add_text(m->c, shown, number);
}

static int add_func(struct making *m, const char *system, const char *file, uint32_t *number)
{
	struct calls *c = m->c;
	struct call_func f = { .file = 0 };
	void *v;
	bool fresh = false;
	int err = add_text(c, system, &f.system);

	if (!err && file)
		err = add_text(c, file, &f.file);
	if (!err)
		err = pairs_add(&m->funcs, f.system, f.file, number, &fresh);
	if (err || !fresh)
		return err;
	err = add_shown(m, system, &f.name);
	if (err)
		return err;
	v = array_room(c->func, &m->func_cap, c->funcs, sizeof(*c->func));
	if (!v)
		return -ENOMEM;
	c->func = v;
	c->func[c->funcs++] = f;
	return 0;
}

/* ---- what is at an address */

static int add_line(struct making *m, const char *name, const char *file, unsigned line)
{
	struct calls *c = m->c;
	struct call_line l = { .line = line };
	void *v;
	int err = add_func(m, name, file, &l.func);

	if (err)
		return err;
	v = array_room(c->line, &m->line_cap, c->lines, sizeof(*c->line));
	if (!v)
		return -ENOMEM;
	c->line = v;
	c->line[c->lines++] = l;
	return 0;
}

/* "OUTER--INNER": the innermost comes first here. */
static int add_names(struct making *m, const char *names)
{
	const char *end = names + strlen(names);
	char part[TEXT_MAX];
	int err = 0;

	for (int i = 0; end && i < INLINED && !err; i++) {
		const char *cut = call_text_part(names, end), *from = cut ? cut + 2 : names;

		snprintf(part, sizeof(part), "%.*s", (int)(end - from), from);
		if (part[0])
			err = add_line(m, part, NULL, 0);
		end = cut;
	}
	return err;
}

static int add_found(struct making *m, uint64_t pc)
{
	struct symbol_frame frame[INLINED];
	size_t n = m->source->find ? m->source->find(m->source->arg, pc, frame, INLINED) : 0;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		if (frame[i].name)
			err = add_line(m, frame[i].name, frame[i].file, frame[i].line);
	return err;
}

/* "libx.so.1+0x1234": the offset in the file. */
static int add_address(struct making *m, const struct call_site *s)
{
	const char *slash = s->map ? strrchr(s->map->path, '/') : NULL;
	char text[300];

	if (s->map)
		snprintf(text, sizeof(text), "%.250s+0x%" PRIx64, slash ? slash + 1 : s->map->path,
			 s->pc - s->map->start + s->map->offset);
	else
		snprintf(text, sizeof(text), "0x%" PRIx64, s->pc);
	m->c->unknown++;
	return add_line(m, text, NULL, 0);
}

/* Is the function that the code at this address belongs to one of the allocator's? */
static bool is_internal(const struct calls *c, const struct call_site *s)
{
	const struct call_line *outer = &c->line[s->first + s->lines - 1];

	return s->known && call_internal(calls_text(c, c->func[outer->func].name));
}

static int fill_site(struct making *m, struct call_site *s, const char *names)
{
	struct calls *c = m->c;
	int err = names ? add_names(m, names) : c->profile->names ? 0 : add_found(m, s->pc);

	s->known = c->lines > s->first;
	if (!err && !s->known)
		err = add_address(m, s);
	if (err)
		return err;
	s->lines = (uint32_t)(c->lines - s->first);
	s->named_internal = is_internal(c, s);
	s->filed_internal = s->map && call_internal_file(s->map->path);
	return 0;
}

static int add_site(struct making *m, const struct profile_stack *stack, uint32_t i, uint32_t *out)
{
	struct calls *c = m->c;
	struct call_site s = { .pc = profile_lookup(stack, i), .first = (uint32_t)c->lines };
	void *v;
	const char *names;
	bool fresh = false;
	int err = pairs_add(&m->sites, s.pc, 0, out, &fresh);

	if (err || !fresh)
		return err;
	if (c->sites == CALLS_SITES_MAX)
		return -E2BIG;
	if (c->lines > UINT32_MAX - INLINED - 1)
		return -EOVERFLOW;
	s.map = profile_map_find(c->profile, s.pc);
	names = profile_names_find(c->profile, s.pc);
	if (!names) /* of one who did not subtract */
		names = profile_names_find(c->profile, stack->pc[i]);
	err = fill_site(m, &s, names);
	if (err)
		return err;
	v = array_room(c->site, &m->site_cap, c->sites, sizeof(*c->site));
	if (!v)
		return -ENOMEM;
	c->site = v;
	c->site[c->sites++] = s;
	return 0;
}

/* ---- stacks */

static void drop_internal(const struct calls *c, struct call_stack *s)
{
	uint32_t from = 0;

	while (from < s->depth && c->site[s->site[from]].filed_internal)
		from++;
	for (uint32_t i = from; i < s->depth; i++)
		if (c->site[s->site[i]].named_internal)
			from = i + 1;
	if (from == s->depth)
		from--;
	s->site += from;
	s->depth -= from;
}

static int add_stack(struct making *m, const struct profile_stack *from)
{
	struct calls *c = m->c;
	struct call_stack *s = &c->stack[c->stacks];
	uint32_t *site = pool_take(c->pool, from->depth * sizeof(*site));
	int err = site ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < from->depth && !err; i++)
		err = add_site(m, from, i, &site[i]);
	if (err)
		return err;
	*s = (struct call_stack){ .site = site, .depth = from->depth, .n = &from->n };
	drop_internal(c, s);
	c->stacks++;
	return 0;
}

static int make(struct making *m)
{
	struct calls *c = m->c;
	uint32_t none;
	int err;

	c->pool = pool_new();
	c->stack = calloc(c->profile->stacks + 1, sizeof(*c->stack));
	if (!c->pool || !c->stack)
		return -ENOMEM;
	c->texts.pool = c->pool;
	err = texts_add(&c->texts, "", &none);
	for (size_t i = 0; i < c->profile->stacks && !err; i++)
		err = add_stack(m, &c->profile->stack[i]);
	return err;
}

int calls_make(const struct profile *p, const struct call_source *source, struct calls **out)
{
	struct making m = { .c = calloc(1, sizeof(struct calls)), .source = source };
	int err;

	*out = NULL;
	if (!m.c)
		return -ENOMEM;
	m.c->profile = p;
	err = make(&m);
	pairs_free(&m.funcs);
	pairs_free(&m.sites);
	if (err)
		calls_free(m.c);
	else
		*out = m.c;
	return err;
}

void calls_free(struct calls *c)
{
	if (!c)
		return;
	texts_free(&c->texts);
	free(c->func);
	free(c->line);
	free(c->site);
	free(c->stack);
	pool_free(c->pool);
	free(c);
}

int calls_lookups(const struct profile *p, uint64_t **pcs, size_t *n)
{
	struct pairs seen = { .n = 0 };
	uint32_t number;
	bool fresh = false;
	int err = 0;

	*n = 0;
	*pcs = NULL;
	for (size_t i = 0; i < p->stacks && !err; i++)
		for (uint32_t k = 0; k < p->stack[i].depth && !err; k++) {
			err = pairs_add(&seen, profile_lookup(&p->stack[i], k), 0, &number, &fresh);
			err = !err && seen.n > CALLS_SITES_MAX ? -E2BIG : err;
		}
	if (!err) {
		*pcs = calloc(seen.n + 1, sizeof(**pcs));
		err = *pcs ? 0 : -ENOMEM;
	}
	for (; !err && *n < seen.n; ++*n)
		(*pcs)[*n] = seen.v[*n].a;
	pairs_free(&seen);
	return err;
}

void calls_symbol_section(const struct calls *c, const char *(*build_id)(void *arg, size_t map),
			  void *arg, struct bytes *out)
{
	bytes_text(out, "--- symbol\n");
	for (size_t i = 0; build_id && i < c->profile->maps; i++) {
		const char *id = build_id(arg, i);

		if (id)
			bytes_printf(out, "# build-id 0x%" PRIx64 " %s\n", c->profile->map[i].start,
				     id);
	}
	for (size_t i = 0; i < c->sites; i++) {
		const struct call_site *s = &c->site[i];

		if (!s->known && s->filed_internal)
			bytes_printf(out, "0x%016" PRIx64 " malloc\n", s->pc);
		if (!s->known)
			continue;
		bytes_printf(out, "0x%016" PRIx64, s->pc);
		for (uint32_t k = s->lines; k-- > 0;) {
			const struct call_func *f = &c->func[c->line[s->first + k].func];

			bytes_printf(out, "%s%s", k + 1 == s->lines ? " " : "--",
				     calls_text(c, f->name));
		}
		bytes_char(out, '\n');
	}
	bytes_text(out, "---\n--- heap\n");
}
