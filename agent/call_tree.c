// SPDX-License-Identifier: GPL-3.0-or-later
#include "call_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

struct growing {
	struct call_tree *t;
	struct pairs places; /* (parent, name): one less than the node's number */
	size_t cap;
};

static int add_node(struct growing *g, uint32_t parent, uint32_t name, uint32_t *number)
{
	struct call_tree *t = g->t;
	bool fresh;
	void *v;
	int err = pairs_add(&g->places, parent, name, number, &fresh);

	if (err)
		return err;
	++*number; /* the root is none of the pairs */
	if (!fresh)
		return 0;
	if (t->n == CALL_TREE_NODES)
		return -EFBIG;
	v = array_room(t->v, &g->cap, t->n, sizeof(*t->v));
	if (!v)
		return -ENOMEM;
	t->v = v;
	t->v[t->n++] = (struct call_node){
		.name = name,
		.parent = parent,
		.depth = t->v[parent].depth + 1,
	};
	return 0;
}

static int add_stack(struct growing *g, const struct calls *c, const struct call_stack *s)
{
	uint32_t at = 0;
	int err = 0;

	for (uint32_t i = s->depth; i-- > 0 && !err;) {
		const struct call_site *site = &c->site[s->site[i]];

		for (uint32_t k = site->lines; k-- > 0 && !err;)
			err = add_node(g, at, c->func[c->line[site->first + k].func].name, &at);
	}
	if (!err)
		g->t->v[at].self += s->n->live_bytes;
	return err;
}

/* ---- the order of children */

struct place {
	uint32_t parent, node;
	const char *name;
};

static int order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int link_children(const struct calls *c, struct call_tree *t)
{
	struct place *p = calloc(t->n, sizeof(*p));

	if (!p)
		return -ENOMEM;
	for (size_t i = 1; i < t->n; i++)
		p[i] = (struct place){ t->v[i].parent, (uint32_t)i, calls_text(c, t->v[i].name) };
	qsort(p + 1, t->n - 1, sizeof(*p), order);
	for (size_t i = t->n; i-- > 1;) {
		struct call_node *parent = &t->v[p[i].parent];

		t->v[p[i].node].next = parent->child;
		parent->child = p[i].node;
	}
	free(p);
	return 0;
}

/* A parent's number is less than its children's. */
static void add_up(struct call_tree *t)
{
	for (size_t i = t->n; i-- > 0;) {
		t->v[i].total += t->v[i].self;
		if (i)
			t->v[t->v[i].parent].total += t->v[i].total;
	}
}

int call_tree_make(const struct calls *c, struct call_tree *out)
{
	struct growing g = { .t = out };
	int err;

	*out = (struct call_tree){ .n = 0 };
	out->v = array_room(NULL, &g.cap, 0, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	out->v[out->n++] = (struct call_node){ .name = 0 };
	err = 0;
	for (size_t i = 0; i < c->stacks && !err; i++)
		err = add_stack(&g, c, &c->stack[i]);
	pairs_free(&g.places);
	if (!err)
		err = link_children(c, out);
	if (err)
		call_tree_free(out);
	else
		add_up(out);
	return err;
}

void call_tree_free(struct call_tree *t)
{
	free(t->v);
	*t = (struct call_tree){ .n = 0 };
}

/* ---- folded */

/* The path is a stack of text: each node adds its name, and takes it away when it is left. */
static void folded_name(struct bytes *path, const char *name)
{
	if (path->len)
		bytes_char(path, ';');
	for (; *name; name++)
		bytes_char(path, *name == ';' ? ':' : *name);
}

static void folded_line(const struct call_node *n, const struct bytes *path, struct bytes *out)
{
	uint64_t bytes = profile_round(n->self);

	if (!bytes)
		return;
	bytes_put(out, path->v, path->len);
	bytes_printf(out, " %" PRIu64 "\n", bytes);
}

void call_tree_folded(const struct calls *c, const struct call_tree *t, struct bytes *out)
{
	size_t *length = calloc(t->n, sizeof(*length)); /* of the path, by node */
	struct bytes path = { .v = NULL };
	uint32_t at = t->v[0].child;

	out->failed |= !length;
	while (length && at && !path.failed) {
		uint32_t next;

		length[at] = path.len;
		folded_name(&path, calls_text(c, t->v[at].name));
		folded_line(&t->v[at], &path, out);
		for (next = t->v[at].child; !next && at; at = t->v[at].parent) {
			path.len = length[at];
			next = t->v[at].next;
		}
		at = next;
	}
	out->failed |= path.failed;
	bytes_free(&path);
	free(length);
}
