// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols_live.h"

#include <errno.h>
#include <string.h>

#include "../inject/image.h"
#include "../inject/objfile.h"

#define COPY_BUDGET ((uint64_t)256 << 20)
/* Mappings between the start of an object and one of its pieces. */
#define LOOK_BACK 64

struct symbols_live symbols_live_begin(const struct target *t, const struct maps *maps)
{
	return (struct symbols_live){ .t = t, .maps = maps, .budget = COPY_BUDGET };
}

static bool same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* The mapping with the ELF header of the object that at is a piece of. */
static const struct map *find_head(const struct maps *maps, const struct map *at)
{
	const struct map *m;

	for (m = at; m >= maps->v && at - m < LOOK_BACK; m--)
		if (!m->offset && same_file(m, at))
			return m;
	return NULL;
}

/* The kernel's mark of a file that is gone is no part of its name. Where the process has another
 * root directory than we, it sees the end of the path that we see. */
static bool same_path(const char *ours, const char *its)
{
	static const char gone[] = " (deleted)";
	size_t len = strlen(ours), n = strlen(its), mark = sizeof(gone) - 1;

	if (n > mark && !strcmp(its + n - mark, gone))
		n -= mark;
	/* [vdso] has no directories before it */
	if (its[0] != '/')
		return n == len && !memcmp(ours, its, n);
	return n <= len && !memcmp(ours + len - n, its, n);
}

/* A mapping may have been cut or joined with the next since. */
static bool same_place(const struct map *at, const struct symbol_map *m)
{
	return at->offset + (m->start - at->start) == m->offset && same_path(at->name, m->path);
}

static int open_object(struct symbols_live *l, const struct map *head)
{
	struct image im;
	int fd, err = image_read(l->t->pid, head->start, &im), copy;

	if (err)
		return err;
	err = objfile_open(l->t->procfd, head, &im, true, &fd);
	if (err && err != -EMFILE && err != -ENFILE) {
		copy = image_to_file(&im, &l->budget, &fd);
		if (!copy)
			err = 0;
	}
	image_free(&im);
	return err ? err : fd;
}

int symbols_live_open(void *live, const struct symbol_map *m)
{
	struct symbols_live *l = live;
	const struct map *at, *head;
	int fd, err;

	if (!m->end) {
		err = objfile_open_path(l->t->procfd, m->path, &fd);
		return err ? err : fd;
	}
	at = maps_find(l->maps, m->start);
	if (!at || !same_place(at, m))
		return -ESTALE;
	head = find_head(l->maps, at);
	return head ? open_object(l, head) : -ENOENT;
}

int symbols_path_open(void *arg, const struct symbol_map *m)
{
	int fd, err;

	(void)arg;
	/* what has the path now is not what was mapped, unless a build id says so */
	if (m->deleted && !m->build_id)
		return -ESTALE;
	err = objfile_open_path(-1, m->path, &fd);
	return err ? err : fd;
}
