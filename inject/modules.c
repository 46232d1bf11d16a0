// SPDX-License-Identifier: GPL-3.0-or-later
#include "modules.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "modules_private.h"
#include "objfile.h"

#define SEARCH_CHUNK ((size_t)256 * 1024)
#define SEARCH_MAX   ((uint64_t)64 * 1024 * 1024)
#define BANNER_MAX   256
/* What a session opens, and some more. */
#define SPARE_DESCRIPTORS 24

void modules_free(struct modules *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		elf_file_close(m->v[i].elf);
		free(m->v[i].path);
	}
	free(m->v);
	if (m->priv) {
		if (m->priv->procfd >= 0)
			close(m->priv->procfd);
		free(m->priv->extra);
		free(m->priv->code);
	}
	free(m->priv);
	*m = (struct modules){ 0 };
}

const struct module *modules_at(const struct modules *m, uint64_t addr)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (addr >= m->v[i].start && addr < m->v[i].end)
			return &m->v[i];
	return NULL;
}

void module_symbol_fill(const struct module *mod, const struct elf_sym *s, struct symbol *out)
{
	*out = (struct symbol){
		.addr = s->type == STT_TLS ? s->value : s->value + mod->bias,
		.size = s->size,
		.type = s->type,
		.bind = s->bind,
		.mod = mod,
	};
}

/* What the dynamic linker would find: exported names. Of a static program any name: ld makes hidden
 * ones, malloc among them, local in a static PIE. */
static int exported(const struct module *mod, bool linked, const char *name, struct symbol *out)
{
	struct elf_sym s;
	int err;

	if (!mod->elf)
		return -ENOENT;
	if (linked || !mod->is_main)
		err = elf_file_lookup_dynamic(mod->elf, name, &s);
	else
		err = elf_file_lookup(mod->elf, name, &s);
	if (err)
		return err;
	module_symbol_fill(mod, &s, out);
	return 0;
}

int modules_symbol(const struct modules *m, const char *name, struct symbol *out)
{
	size_t i, n = m->link_order ? m->base : m->n;
	int err;

	for (i = 0; i < n; i++) {
		err = exported(&m->v[i], m->link_order, name, out);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

/*
 * A debug file helps and is not needed: the last descriptors are for what is. They are given out
 * lowest first, so that the number of one tells how many there are.
 */
static bool is_one_of_the_last(int fd)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) == 0 && (rlim_t)fd + SPARE_DESCRIPTORS >= r.rlim_cur;
}

void module_need_debug(const struct module *mod)
{
	const unsigned char *id;
	struct elf_file *dbg;
	size_t len;
	int fd;

	if (!mod->elf || !mod->more || mod->more->debug_tried)
		return;
	mod->more->debug_tried = true;
	if (elf_file_has_symtab(mod->elf))
		return;
	len = elf_file_build_id(mod->elf, &id);
	if (!len || objfile_open_debug(mod->more->all->procfd, id, len, &fd))
		return;
	if (is_one_of_the_last(fd)) {
		close(fd);
		return;
	}
	if (elf_file_open(fd, &dbg))
		return;
	if (elf_file_add_debug(mod->elf, dbg))
		elf_file_close(dbg);
}

int module_symbol(const struct module *mod, const char *name, struct symbol *out)
{
	struct elf_sym s;
	int err;

	if (!mod->elf)
		return -ENOENT;
	err = elf_file_lookup(mod->elf, name, &s);
	if (err == -ENOENT && mod->more && !mod->more->debug_tried) {
		module_need_debug(mod);
		err = elf_file_lookup(mod->elf, name, &s);
	}
	if (err)
		return err;
	module_symbol_fill(mod, &s, out);
	return 0;
}

static bool defines(const struct module *mod, const char *name)
{
	struct elf_sym s;

	return mod->elf && !elf_file_lookup(mod->elf, name, &s);
}

static const struct module *main_module(const struct modules *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->v[i].is_main)
			return &m->v[i];
	return NULL;
}

const struct module *modules_glibc(const struct modules *m)
{
	const struct module *prog = main_module(m);
	struct elf_sym s;
	size_t i, n = m->link_order ? m->base : m->n;

	for (i = 0; i < n; i++)
		if (m->v[i].elf &&
		    !elf_file_lookup_dynamic(m->v[i].elf, "gnu_get_libc_version", &s) &&
		    !elf_file_lookup_dynamic(m->v[i].elf, "malloc", &s))
			return &m->v[i];
	/* A static program: these two are glibc's own names, musl has only the first. */
	if (prog && !prog->has_interp && defines(prog, "__libc_start_main") &&
	    defines(prog, "__libc_setup_tls"))
		return prog;
	return NULL;
}

static bool interp_is_musl(const struct module *prog)
{
	const struct elf_segment *seg;
	char interp[256] = "";
	size_t i, n;

	if (!prog->elf)
		return false;
	n = elf_file_segments(prog->elf, &seg);
	for (i = 0; i < n; i++) {
		if (seg[i].type != PT_INTERP || seg[i].filesz >= sizeof(interp))
			continue;
		if (!elf_file_read(prog->elf, seg[i].vaddr, interp, (size_t)seg[i].filesz))
			return strstr(interp, "/ld-musl-") != NULL;
	}
	return false;
}

bool modules_musl(const struct modules *m)
{
	const struct module *prog = main_module(m);
	size_t i;

	for (i = 0; i < m->n; i++)
		if (strstr(m->v[i].path, "/ld-musl-"))
			return true;
	if (!prog)
		return false;
	if (interp_is_musl(prog))
		return true;
	return !prog->has_interp && defines(prog, "__init_libc") &&
	       defines(prog, "__libc_start_main") && !defines(prog, "__libc_setup_tls");
}

/* The number after "release version " in glibc's banner, as csu/version.c writes it. */
static int parse_banner(const char *text, size_t len, char *buf, size_t size)
{
	static const char name[] = "GNU C Library", word[] = "release version ";
	const char *at = memmem(text, len, name, sizeof(name) - 1), *v;
	size_t n = 0, left;

	while (at) {
		left = len - (size_t)(at - text);
		v = memmem(at, left < BANNER_MAX ? left : BANNER_MAX, word, sizeof(word) - 1);
		if (v) {
			v += sizeof(word) - 1;
			left = len - (size_t)(v - text);
			while (n < left && n + 1 < size &&
			       (isdigit((unsigned char)v[n]) || v[n] == '.'))
				n++;
			while (n && v[n - 1] == '.')
				n--;
			if (!n)
				return -ENOENT;
			memcpy(buf, v, n);
			buf[n] = 0;
			return 0;
		}
		at += sizeof(name) - 1;
		at = memmem(at, len - (size_t)(at - text), name, sizeof(name) - 1);
	}
	return -ENOENT;
}

/* Chunks overlap by more than a banner, so that none is cut in two. */
static int search_segment(struct elf_file *e, const struct elf_segment *s, char *chunk,
			  uint64_t *budget, char *buf, size_t size)
{
	uint64_t at, n;

	for (at = 0; at < s->filesz && *budget; at += SEARCH_CHUNK - 2 * BANNER_MAX) {
		n = s->filesz - at < SEARCH_CHUNK ? s->filesz - at : SEARCH_CHUNK;
		*budget -= n < *budget ? n : *budget;
		if (elf_file_read(e, s->vaddr + at, chunk, (size_t)n))
			return -ENOENT;
		if (!parse_banner(chunk, (size_t)n, buf, size))
			return 0;
	}
	return -ENOENT;
}

int modules_glibc_version(const struct module *libc, char *buf, size_t size)
{
	const struct elf_segment *seg;
	uint64_t budget = SEARCH_MAX; /* over all segments: they may overlap */
	char *chunk;
	size_t i, n;
	int err = -ENOENT, pass;

	if (!libc->elf || size < 2)
		return -ENOENT;
	chunk = malloc(SEARCH_CHUNK);
	if (!chunk)
		return -ENOMEM;
	n = elf_file_segments(libc->elf, &seg);
	/* Constants have a segment of their own in most files, else they are with the code. */
	for (pass = 0; pass < 2 && err; pass++)
		for (i = 0; i < n && err; i++)
			if (seg[i].type == PT_LOAD && !(seg[i].flags & PF_W) &&
			    !(seg[i].flags & PF_X) == !pass)
				err = search_segment(libc->elf, &seg[i], chunk, &budget, buf, size);
	free(chunk);
	return err;
}

struct nearest {
	uint64_t addr, value;
	size_t size;
	char *name;
	int rank;
};

/* Of the names of one place the plainest: global, few underscores in front. */
static int name_rank(const char *name, const struct elf_sym *s)
{
	int rank = s->bind == STB_LOCAL ? 0 : 8;

	return rank + 4 - (int)strspn(name, "_");
}

static int nearest_take(const char *name, const struct elf_sym *s, void *arg)
{
	struct nearest *ne = arg;
	int rank = name_rank(name, s);

	if ((s->type != STT_FUNC && s->type != STT_GNU_IFUNC) || s->value > ne->addr ||
	    (s->size ? ne->addr - s->value >= s->size : ne->addr != s->value))
		return 0;
	if (ne->name[0] && (s->value < ne->value || (s->value == ne->value && rank <= ne->rank)))
		return 0;
	snprintf(ne->name, ne->size, "%s", name);
	ne->value = s->value;
	ne->rank = rank;
	return 0;
}

void module_describe(const struct module *mod, uint64_t addr, char *name, size_t size,
		     uint64_t *off)
{
	struct nearest ne = { .addr = addr - mod->bias, .name = name, .size = size };

	name[0] = 0;
	*off = 0;
	if (!mod->elf)
		return;
	module_need_debug(mod);
	if (elf_file_each(mod->elf, nearest_take, &ne))
		return;
	if (name[0])
		*off = ne.addr - ne.value;
}
