// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_text.h"

#include <string.h>

#include "../agent/allocator_choice.h"
#include "../agent/allocator_missing.h"
#include "context.h"

static void fact(const struct context *c, const char *name, const char *value)
{
	fprintf(c->sink->out, "%-11s %s\n", name, value);
}

/* Its file is of interest where that is not libc, and where there are others. */
static void print_one(const struct context *c, const struct allocators *v,
		      const struct allocator *a)
{
	bool glibc = strcmp(a->ops->name, "glibc") == 0;
	char line[512], label[ALLOCATOR_LABEL];

	snprintf(line, sizeof(line), "%s%s%s, %s%s%s%s%s%s%s%s", a->ops->name,
		 a->version[0] ? " " : "", a->version, linkage_name(a->linkage),
		 a->owns_malloc ? ", owns malloc" : "", a->prefix[0] ? ", prefix " : "", a->prefix,
		 a->in_use ? "" : ", not in use", glibc ? "" : ", in ",
		 glibc ? "" : allocator_label(v, a, label, sizeof(label)),
		 a->reach ? ": cannot be called" : "");
	fact(c, "allocator", line);
}

void allocators_print(const struct context *c, const struct allocators *v)
{
	char line[80];

	for (size_t i = 0; i < v->n; i++)
		print_one(c, v, &v->v[i]);
	if (v->n == 0)
		fact(c, "allocator", "none that heapmedic knows");
	if (v->more) {
		snprintf(line, sizeof(line), "and %zu more, which are left alone", v->more);
		fact(c, "", line);
	}
}

json_t *allocators_json(struct reply *r, const struct allocators *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n; i++) {
		const struct allocator *a = &v->v[i];
		json_t *o = json_object();

		reply_member(r, o, "name", json_string(a->ops->name));
		reply_member(r, o, "version", json_text(a->version, strlen(a->version)));
		reply_member(r, o, "owns_malloc", json_boolean(a->owns_malloc));
		reply_member(r, o, "linkage", json_string(linkage_name(a->linkage)));
		reply_member(r, o, "symbol_prefix", json_text(a->prefix, strlen(a->prefix)));
		reply_member(r, o, "in_use", json_boolean(a->in_use));
		reply_member(r, o, "file", json_text(a->file, strlen(a->file)));
		reply_member(r, o, "callable", json_boolean(a->reach == ALLOCATOR_CALLABLE));
		if (json_array_append_new(list, o))
			r->failed = true;
	}
	return list;
}

void allocators_warn(struct context *c, struct reply *r, const struct allocators *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct allocator *a = &v->v[i];
		struct diag d = { 0 };

		if (!a->in_use || !a->reach || !allocator_unreachable(a, &d))
			continue;
		reply_warn(c, r, d.code, "%s; %s", d.text, d.hint);
	}
}
