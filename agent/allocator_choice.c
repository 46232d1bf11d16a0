// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_file(const struct allocator *a, const char *word, size_t len)
{
	const char *base = allocator_base(a);

	return (strlen(base) == len && !memcmp(base, word, len)) ||
	       (strlen(a->file) == len && !memcmp(a->file, word, len));
}

bool allocator_is(const struct allocator *a, const char *word)
{
	const char *colon = strrchr(word, ':');

	if (!*word)
		return false;
	if (strcmp(word, a->ops->name) == 0 || is_file(a, word, strlen(word)))
		return true;
	if (*a->prefix && strcmp(word, a->prefix) == 0)
		return true;
	return colon && strcmp(colon + 1, a->prefix) == 0 &&
	       is_file(a, word, (size_t)(colon - word));
}

bool allocator_asked(const struct process *p, const struct allocator *a)
{
	return a->in_use && (!p->only[0] || allocator_is(a, p->only));
}

/* How many of all a word names. */
static size_t count(const struct allocators *all, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += allocator_is(&all->v[i], word);
	return n;
}

const char *allocator_label(const struct allocators *all, const struct allocator *a, char *buf,
			    size_t size)
{
	snprintf(buf, size, "%s", allocator_base(a));
	if (count(all, buf) > 1)
		snprintf(buf, size, "%s:%s", allocator_base(a), a->prefix);
	if (count(all, buf) > 1)
		snprintf(buf, size, "%s:%s", a->file, a->prefix);
	return buf;
}

/* The labels of those in use (of one kind, or NULL), as many as there is room for. */
static void list(const struct process *p, const char *kind, char *buf, size_t size)
{
	const char *gap = "";
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];
		char label[ALLOCATOR_LABEL];
		int n;

		if (!a->in_use || (kind && strcmp(a->ops->name, kind) != 0))
			continue;
		n = snprintf(buf + at, size - at, "%s%s", gap,
			     allocator_label(&p->allocs, a, label, sizeof(label)));
		if (n < 0 || (size_t)n >= size - at) {
			buf[at] = '\0';
			return;
		}
		at += (size_t)n;
		gap = ", ";
	}
}

int allocator_choice_check(const struct process *p, struct diag *d)
{
	char names[300];

	if (!p->only[0])
		return 0;
	for (size_t i = 0; i < p->allocs.n; i++)
		if (allocator_asked(p, &p->allocs.v[i]))
			return 0;
	list(p, NULL, names, sizeof(names));
	return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-such-allocator",
			 names[0] ? names : "`check` lists what was found",
			 "no allocator that is in use in process %d is named '%.100s'", p->t.pid,
			 p->only);
}

int allocator_choose(const struct process *p, const char *kind, const struct allocator **out,
		     size_t *others, struct diag *d)
{
	char names[300], hint[sizeof(d->hint)];
	size_t n = 0;
	bool owner = false;

	*out = NULL;
	*others = 0;
	for (size_t i = 0; i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];

		if (!allocator_asked(p, a) || strcmp(a->ops->name, kind) != 0)
			continue;
		n++;
		if (!*out || (a->owns_malloc && !owner))
			*out = a;
		owner |= a->owns_malloc;
	}
	if (!n)
		return -ENOENT;
	*others = n - 1;
	if (n == 1 || owner)
		return 0;
	list(p, kind, names, sizeof(names));
	snprintf(hint, sizeof(hint), "name one with --allocator: %s", names);
	return diag_fail(d, -EINVAL, HM_USAGE, "several-allocators", hint,
			 "process %d uses %zu %ss, and none of them owns malloc", p->t.pid, n,
			 kind);
}
