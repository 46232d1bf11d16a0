// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../inject/elf.h"
#include "../inject/elf_range.h"
#include "symbol_files.h"
#include "symbol_lines.h"
#include "symbol_scan.h"
#include "symbols_private.h"

#define BUILD_ID_MAX 64

/* One file, and the addresses of it that are looked up. */
struct wanted {
	uint64_t at; /* as in the file */
	size_t place;
};

struct object {
	dev_t dev;
	ino_t ino;
	struct elf_file *e; /* NULL: none is open */
	struct wanted *want;
	size_t n, cap;
	struct symbols_map **map; /* that it is behind */
	size_t maps;
};

int symbols_add_frame(struct symbols *s, struct symbols_place *p, const struct symbol_frame *f)
{
	size_t cap = s->frames_cap ? 2 * s->frames_cap : 256;
	struct symbol_frame *v;

	if (p->frames == SYMBOLS_FRAMES)
		return 0;
	if (s->frames >= UINT32_MAX)
		return -ENOMEM;
	if (s->frames == s->frames_cap) {
		v = realloc(s->frame, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->frame = v;
		s->frames_cap = cap;
	}
	if (!p->frames)
		p->first = (uint32_t)s->frames;
	s->frame[s->frames++] = *f;
	p->frames++;
	return 0;
}

static const char *hex_id(struct symbols *s, const struct elf_file *e)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * BUILD_ID_MAX];
	const unsigned char *id;
	size_t n = elf_file_build_id(e, &id), i;

	if (!n || n > BUILD_ID_MAX)
		return NULL;
	for (i = 0; i < n; i++) {
		hex[2 * i] = digits[id[i] >> 4];
		hex[2 * i + 1] = digits[id[i] & 15];
	}
	return names_add(s->names, hex, 2 * n);
}

static bool has_file(const struct symbol_map *m)
{
	return m->path && m->path[0];
}

static int map_fail(struct symbols_map *m, int err)
{
	m->error = err;
	if (err == -ESTALE)
		m->state = SYMBOLS_CHANGED;
	else if (err == -ENOEXEC || err == -EBADMSG)
		m->state = SYMBOLS_BAD;
	else
		m->state = has_file(m->map) ? SYMBOLS_GONE : SYMBOLS_NO_FILE;
	return err;
}

/* The file behind m, of which the build id is the one that the map is known to have had. */
static int open_checked(struct symbols *s, struct symbols_map *m, struct stat *st,
			struct elf_file **e)
{
	int fd = has_file(m->map) ? s->open(s->arg, m->map) : -ENOENT, err;

	if (fd < 0)
		return map_fail(m, fd);
	if (fstat(fd, st)) {
		err = -errno;
		close(fd);
		return map_fail(m, err);
	}
	err = elf_file_open(fd, e);
	if (err)
		return map_fail(m, err);
	m->build_id = hex_id(s, *e);
	m->looked = true;
	m->other_inode = !m->map->build_id && m->map->inode && st->st_ino != m->map->inode;
	if (m->map->build_id && (!m->build_id || strcmp(m->build_id, m->map->build_id) != 0)) {
		elf_file_close(*e);
		m->build_id = NULL;
		return map_fail(m, -ESTALE);
	}
	return 0;
}

void symbols_look(struct symbols *s, struct symbols_map *m)
{
	struct elf_file *e = NULL;
	struct stat st;

	m->looked = true;
	if (open_checked(s, m, &st, &e)) {
		/* it may be there when it is needed */
		m->state = SYMBOLS_UNASKED;
		return;
	}
	elf_file_close(e);
}

/*
 * What the map's addresses are in the file, by the segment that its offset lies in. A map that the
 * file has no code for was made of another file.
 */
static int take_map(struct symbols *s, struct object *o, struct symbols_map *m)
{
	struct wanted *v = realloc(o->want, (o->n + m->count + 1) * sizeof(*v));
	size_t i, found = 0;

	if (!v)
		return -ENOMEM;
	o->want = v;
	for (i = m->first; i < m->first + m->count; i++) {
		uint64_t off = s->place[i].pc - m->map->start + m->map->offset;

		if (elf_file_code_at(o->e, off, &v[o->n].at))
			continue;
		v[o->n++].place = i;
		found++;
	}
	if (found)
		o->map[o->maps++] = m;
	else
		map_fail(m, -ESTALE);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Addresses in order, each once: two maps may be of the same part of a file. */
static uint64_t *addresses(struct object *o, size_t *n)
{
	uint64_t *at = malloc((o->n + 1) * sizeof(*at));
	size_t i;

	*n = 0;
	if (!at)
		return NULL;
	qsort(o->want, o->n, sizeof(*o->want), by_address);
	for (i = 0; i < o->n; i++)
		if (!i || o->want[i].at != o->want[i - 1].at)
			at[(*n)++] = o->want[i].at;
	return at;
}

/* As C++ and Rust do it: the name has the scopes that debug information leaves out. */
static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* What is known of one address, from the symbols and from debug information. */
static int add_place(struct symbols *s, struct symbols_place *p, const char *name,
		     const struct symbol_lines *l, size_t k)
{
	const struct symbol_line *line = l->at ? &l->at[k] : NULL;
	struct symbol_frame f;
	size_t i;
	int err = 0;

	if (!line || !line->frames) {
		f = (struct symbol_frame){ .name = name };
		return name ? symbols_add_frame(s, p, &f) : 0;
	}
	for (i = 0; i < line->frames && !err; i++) {
		f = l->frame[line->first + i];
		if (i + 1 == line->frames && name &&
		    (!f.name || (line->unscoped && is_mangled(name))))
			f.name = name;
		err = symbols_add_frame(s, p, &f);
	}
	return err;
}

static int add_places(struct symbols *s, struct object *o, const struct symbol_hit *hit,
		      const struct symbol_lines *l)
{
	size_t i, k = 0;
	int err = 0;

	for (i = 0; i < o->n && !err; i++) {
		if (i && o->want[i].at != o->want[i - 1].at)
			k++;
		err = add_place(s, &s->place[o->want[i].place], hit[k].name, l, k);
	}
	return err;
}

static void tell_maps(const struct object *o, enum symbols_state state, int error)
{
	size_t i;

	/* a copy has no sections (image.h); what has no path never had a file */
	if (state == SYMBOLS_EXPORTED && !elf_file_has_sections(o->e) &&
	    o->map[0]->map->path[0] == '/')
		state = SYMBOLS_MEMORY;
	for (i = 0; i < o->maps; i++) {
		o->map[i]->state = state;
		o->map[i]->error = error;
	}
}

static int resolve_at(struct symbols *s, struct object *o, const struct symbol_files *files,
		      const uint64_t *at, size_t n)
{
	struct symbol_hit *hit = calloc(n + 1, sizeof(*hit));
	struct elf_file *with = symbol_files_lines(files);
	enum symbols_state state = SYMBOLS_NONE;
	struct symbol_lines lines = { 0 };
	int err = hit ? 0 : -ENOMEM, lost = 0;

	if (!err)
		err = symbol_files_names(files, at, n, s->names, hit, &state);
	if (!err && with) {
		lost = symbol_lines_find(with, files->alt, at, n, !s->no_places, s->names, &lines);
		if (!lost || lost == -EBADMSG) {
			state = lost ? SYMBOLS_DAMAGED : SYMBOLS_LINES;
			lost = 0; /* the state says it */
		}
	}
	if (!err)
		err = add_places(s, o, hit, &lines);
	tell_maps(o, state, lost);
	symbol_lines_free(&lines);
	free(hit);
	return err;
}

static int resolve_object(struct symbols *s, struct object *o)
{
	struct symbol_files files;
	uint64_t *at;
	size_t n;
	int err;

	if (!o->n)
		return 0;
	at = addresses(o, &n);
	if (!at)
		return -ENOMEM;
	symbol_files_find(o->e, o->map[0]->map->path, s->open, s->arg, &files);
	err = resolve_at(s, o, &files, at, n);
	symbol_files_close(&files);
	free(at);
	return err;
}

static int end_object(struct symbols *s, struct object *o)
{
	int err = o->e ? resolve_object(s, o) : 0;

	elf_file_close(o->e);
	o->e = NULL;
	o->n = o->maps = 0;
	return err;
}

/* A map of the file that is open already, or the first of another one. */
static int next_map(struct symbols *s, struct object *o, struct symbols_map *m)
{
	struct elf_file *e = NULL;
	struct stat st;
	int err;

	if (open_checked(s, m, &st, &e))
		return 0;
	if (o->e && o->dev == st.st_dev && o->ino == st.st_ino) {
		elf_file_close(e);
		return take_map(s, o, m);
	}
	err = end_object(s, o);
	o->e = e;
	o->dev = st.st_dev;
	o->ino = st.st_ino;
	return err ? err : take_map(s, o, m);
}

static int by_path(const void *a, const void *b)
{
	const struct symbol_map *x = (*(struct symbols_map *const *)a)->map,
				*y = (*(struct symbols_map *const *)b)->map;
	int c = strcmp(x->path ? x->path : "", y->path ? y->path : "");

	if (c)
		return c;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* File after file, so that one is open at a time. */
int symbols_resolve(struct symbols *s)
{
	struct symbols_map **v = calloc(s->n + 1, sizeof(struct symbols_map *));
	struct object o = { .map = calloc(s->n + 1, sizeof(struct symbols_map *)) };
	size_t i, n = 0;
	int err = v && o.map ? 0 : -ENOMEM, last;

	for (i = 0; !err && i < s->n; i++)
		if (s->map[i].count)
			v[n++] = &s->map[i];
	if (n)
		qsort(v, n, sizeof(struct symbols_map *), by_path);
	for (i = 0; !err && i < n; i++)
		err = next_map(s, &o, v[i]);
	last = end_object(s, &o);
	free(o.want);
	free(o.map);
	free(v);
	return err ? err : last;
}
