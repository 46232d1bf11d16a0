// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEEDED_MAX 1024
#define NOWHERE	   SIZE_MAX

struct needed {
	char *name[NEEDED_MAX];
	size_t pos[NEEDED_MAX]; /* index in the list, NOWHERE if not found */
	size_t n;
};

static int take_needed(const char *s, void *arg)
{
	struct needed *nd = arg;

	if (nd->n == NEEDED_MAX)
		return 0;
	nd->name[nd->n] = strdup(s);
	return nd->name[nd->n++] ? 0 : -ENOMEM;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The first one counts. */
static int take_soname(const char *s, void *arg)
{
	char **name = arg;

	*name = strdup(s);
	return *name ? 1 : -ENOMEM;
}

/* A needed name with a slash is a path; one without was looked up and is the last part of one. */
static bool name_matches(const struct preload_entry *e, const char *needed)
{
	return !strcmp(strchr(needed, '/') ? e->name : base_name(e->name), needed);
}

static size_t find_entry(const struct preload_entry *v, char *const *soname, size_t n,
			 const char *needed)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (name_matches(&v[i], needed))
			return i;
	for (i = 0; i < n; i++)
		if (soname[i] && !strcmp(soname[i], needed))
			return i;
	return NOWHERE;
}

static int find_all(struct needed *nd, const struct preload_entry *v, size_t n)
{
	char **soname = calloc(n + 1, sizeof(*soname));
	size_t i;
	int err = soname ? 0 : -ENOMEM;

	/* read once for each object, not once for each pair */
	for (i = 0; i < n && !err; i++)
		if (v[i].elf &&
		    elf_file_dynstr(v[i].elf, DT_SONAME, take_soname, &soname[i]) == -ENOMEM)
			err = -ENOMEM;
	for (i = 0; i < nd->n && !err; i++)
		nd->pos[i] = find_entry(v, soname, n, nd->name[i]);
	for (i = 0; i < n && soname; i++)
		free(soname[i]);
	free(soname);
	return err;
}

static bool is_needed(const struct needed *nd, size_t i)
{
	size_t k;

	for (k = 0; k < nd->n; k++)
		if (nd->pos[k] == i)
			return true;
	return false;
}

/* With the first k objects preloaded, do the needed ones that are left follow one by one? */
static bool splits_at(const struct needed *nd, size_t k)
{
	size_t next = k, i;

	for (i = 0; i < nd->n; i++) {
		if (nd->pos[i] == NOWHERE || nd->pos[i] < next)
			continue; /* not listed by that name, preloaded, or named twice */
		if (nd->pos[i] != next)
			return false;
		next++;
	}
	return true;
}

int preload_mark(struct elf_file *prog, struct preload_entry *v, size_t n)
{
	struct needed *nd = calloc(1, sizeof(*nd));
	size_t i, k = 0;
	int err;

	if (!nd)
		return -ENOMEM;
	err = elf_file_dynstr(prog, DT_NEEDED, take_needed, nd);
	if (err == -ENOMEM)
		goto out;
	err = find_all(nd, v, n);
	if (err)
		goto out;
	while (k < n && !splits_at(nd, k))
		k++;
	for (i = 0; i < k && k < n; i++)
		v[i].preloaded = !is_needed(nd, i);
out:
	for (i = 0; i < nd->n; i++)
		free(nd->name[i]);
	free(nd);
	return err;
}
