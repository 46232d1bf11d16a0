// SPDX-License-Identifier: GPL-3.0-or-later
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image.h"
#include "linkmap.h"
#include "mem.h"
#include "modules.h"
#include "modules_private.h"
#include "objfile.h"
#include "permit.h"
#include "preload.h"

#define MODULES_MAX 8192
#define LOOK_AHEAD  16
#define AUXV_MAX    ((size_t)64 * 1024)
#define COPY_BUDGET ((uint64_t)512 << 20) /* of mapped objects whose files are gone */

struct auxv {
	bool filled; /* execve(2) does that last */
	uint64_t phdr, base, vdso;
};

/* What is known of a module while all are being found. */
struct found {
	struct module mod;
	struct image im;
	const struct map *head;
	unsigned ns; /* of the link map */
	size_t rank; /* place in the link map, SIZE_MAX if it is not there */
	uint64_t l_name;
};

struct loader {
	const struct target *t;
	const struct maps *maps;
	struct auxv aux;
	struct found *v;
	size_t n, cap;
};

static int read_auxv(struct loader *ld, struct diag *d)
{
	Elf64_auxv_t a;
	char *text;
	size_t len, at;
	int err = proc_read(ld->t->procfd, "auxv", AUXV_MAX, &text, &len);

	if (err == -ESRCH || err == -ENOENT)
		return target_gone(ld->t, d);
	if (err == -EACCES || err == -EPERM)
		return permit_explain(ld->t, d);
	if (err)
		return target_unreadable(ld->t, "/auxv", err, d);
	for (at = 0; at + sizeof(a) <= len; at += sizeof(a)) {
		memcpy(&a, text + at, sizeof(a));
		ld->aux.filled |= a.a_type != AT_NULL;
		if (a.a_type == AT_PHDR)
			ld->aux.phdr = a.a_un.a_val;
		else if (a.a_type == AT_BASE)
			ld->aux.base = a.a_un.a_val;
		else if (a.a_type == AT_SYSINFO_EHDR)
			ld->aux.vdso = a.a_un.a_val;
	}
	free(text);
	return 0;
}

static bool same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/*
 * Worth reading its first bytes: the start of a file of which something near is executable, or the
 * vdso, or what holds the program headers. Data files are not read: that would fault their pages
 * into the target, and a device's memory must not be touched at all.
 */
static bool may_be_module(const struct loader *ld, size_t i)
{
	const struct map *m = &ld->maps->v[i];
	size_t k;

	if (ld->aux.vdso && m->start == ld->aux.vdso)
		return true;
	if (m->offset || !(m->prot & PROT_READ))
		return false;
	if (ld->aux.phdr >= m->start && ld->aux.phdr < m->end)
		return true;
	if (!m->inode || m->name[0] != '/')
		return false;
	if (!strncmp(m->name, "/dev/", 5) && strncmp(m->name, "/dev/shm/", 9))
		return false;
	for (k = i; k < ld->maps->n && k < i + LOOK_AHEAD; k++)
		if (ld->maps->v[k].prot & PROT_EXEC && same_file(m, &ld->maps->v[k]))
			return true;
	return false;
}

/* A file that is merely mapped to be read has its code where nothing is executable. */
static bool runs(const struct loader *ld, const struct image *im)
{
	const struct map *m = im->text_start ? maps_find(ld->maps, im->text_start) : NULL;

	return m && m->prot & PROT_EXEC;
}

static int grow(struct loader *ld)
{
	size_t cap = ld->cap ? ld->cap * 2 : 32;
	struct found *v;

	if (ld->n < ld->cap)
		return 0;
	if (ld->n >= MODULES_MAX)
		return -E2BIG;
	v = realloc(ld->v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	ld->v = v;
	ld->cap = cap;
	return 0;
}

static int add_found(struct loader *ld, const struct map *head, const struct image *im)
{
	struct found *f;
	int err = grow(ld);

	if (err)
		return err;
	f = &ld->v[ld->n];
	*f = (struct found){
		.im = *im,
		.head = head,
		.rank = SIZE_MAX,
		.mod = {
			.path = strdup(head->name),
			.bias = im->bias,
			.start = im->start,
			.end = im->end,
			.text_start = im->text_start,
			.text_end = im->text_end,
			.ro_start = im->ro_start,
			.ro_end = im->ro_end,
			.eh_frame_hdr = im->eh_frame_hdr,
			.has_interp = im->interp != 0,
			.is_vdso = ld->aux.vdso && head->start == ld->aux.vdso,
			.is_ldso = ld->aux.base && head->start == ld->aux.base,
			.is_main = ld->aux.phdr >= im->start && ld->aux.phdr < im->end,
			.elf_error = -ENOENT,
		},
	};
	if (!f->mod.path)
		return -ENOMEM;
	ld->n++;
	return 0;
}

static int find_images(struct loader *ld, struct diag *d)
{
	struct image im;
	uint64_t end = 0;
	size_t i;
	int err;

	for (i = 0; i < ld->maps->n; i++) {
		const struct map *m = &ld->maps->v[i];

		if (m->start < end || !may_be_module(ld, i))
			continue;
		err = image_read(ld->t->pid, m->start, &im);
		if (err == -ESRCH)
			return target_gone(ld->t, d);
		if (err == -EPERM)
			return diag_fail(d, err, HM_NOT_PERMITTED, "not-permitted",
					 "see `check` for the cause",
					 "the kernel refuses to read the memory of process %d",
					 (int)ld->t->pid);
		if (err == -ENOMEM)
			return diag_internal(d, err, "reading program headers");
		if (err)
			continue;
		if (!runs(ld, &im) || im.start < end) {
			image_free(&im);
			continue;
		}
		end = im.end;
		err = add_found(ld, m, &im);
		if (err) {
			image_free(&im);
			return diag_internal(d, err, "listing modules");
		}
	}
	return 0;
}

/* A limit of our own: what is missing then is not the target's. */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/*
 * Leaves the reason in elf_error; that a file cannot be had is no failure of the whole. That we
 * have no descriptor left for it is: an allocator in it would not be known.
 */
static int open_file(const struct loader *ld, struct found *f, uint64_t *budget)
{
	int fd, err;

	if (f->mod.is_vdso)
		return 0;
	err = objfile_open(ld->t->procfd, f->head, &f->im, f->mod.is_main, &fd);
	if (!err)
		err = elf_file_open(fd, &f->mod.elf);
	f->mod.elf_error = err;
	if (!err || is_shortage(err))
		return err;
	err = image_to_file(&f->im, budget, &fd);
	if (!err)
		err = elf_file_open(fd, &f->mod.elf);
	if (err)
		f->mod.elf = NULL;
	else
		f->mod.from_memory = true;
	return is_shortage(err) ? err : 0;
}

static struct found *find_main(struct loader *ld)
{
	size_t i;

	for (i = 0; i < ld->n; i++)
		if (ld->v[i].mod.is_main)
			return &ld->v[i];
	return NULL;
}

/*
 * Address of r_debug, 0 where it is not there yet. AT_PHDR describes a program without an
 * interpreter when it is static, and then there is no link map worth the name (-ENOENT), or when it
 * is the dynamic linker itself that was given a program as its argument: then the list is at its
 * own _r_debug.
 */
static int find_r_debug(struct loader *ld, uint64_t *at)
{
	struct found *f = find_main(ld);
	struct elf_sym s;

	if (!f)
		return -ENOENT;
	if (f->im.interp)
		return linkmap_find(ld->t->pid, f->im.dynamic, f->im.dynamic_size, at);
	if (!f->mod.elf || elf_file_lookup_dynamic(f->mod.elf, "_r_debug", &s))
		return -ENOENT;
	*at = f->mod.bias + s.value;
	return 0;
}

static struct found *found_at(struct loader *ld, uint64_t addr)
{
	size_t lo = 0, hi = ld->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (addr < ld->v[mid].mod.start)
			hi = mid;
		else if (addr >= ld->v[mid].mod.end)
			lo = mid + 1;
		else
			return &ld->v[mid];
	}
	return NULL;
}

static void take_entry(struct found *f, const struct linkmap_entry *e, size_t rank)
{
	f->rank = rank;
	f->ns = e->ns;
	f->l_name = e->l_name;
	f->mod.link_map = e->addr;
	/* The two agree unless a program header lies about where the file's first page is. */
	if (f->im.dynamic && e->l_addr + (f->im.dynamic - f->im.bias) == e->l_ld)
		f->mod.bias = e->l_addr;
}

static int take_link_map(struct loader *ld, struct modules *out)
{
	struct linkmap lm;
	struct found *f, *start = find_main(ld);
	uint64_t r_debug = 0;
	size_t i;
	int err = find_r_debug(ld, &r_debug);

	if (err)
		return err == -ENOMEM ? err : 0;
	/* asked first: a list that is being changed now may be whole a moment later */
	out->linking |= linkmap_is_changing(ld->t->pid, r_debug);
	err = linkmap_read(ld->t->pid, r_debug, &lm);
	if (err)
		return err == -ENOMEM ? err : 0;
	f = found_at(ld, lm.v[0].l_ld);
	if (f && f != start && !start->im.interp) {
		start->mod.is_ldso = true;
		start->mod.is_main = false;
		f->mod.is_main = true;
	}
	for (i = 0; i < lm.n; i++) {
		f = found_at(ld, lm.v[i].l_ld);
		if (!f || f->rank != SIZE_MAX)
			continue;
		take_entry(f, &lm.v[i], i);
		out->link_order = true;
		if (lm.v[i].ns == 0)
			out->base++;
	}
	linkmap_free(&lm);
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->mod.start < y->mod.start ? -1 : x->mod.start > y->mod.start;
}

/* Names as the dynamic linker has them, for telling preloaded objects from needed ones. */
static int mark_preloaded(struct loader *ld, size_t base)
{
	struct preload_entry *v;
	struct found *prog = find_main(ld);
	char name[PATH_MAX];
	size_t i, n = 0;
	int err = 0;

	if (!prog || !prog->mod.elf || base < 2)
		return 0;
	v = calloc(base, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < base && !err; i++) {
		struct found *f = &ld->v[i];

		if (f->mod.is_main || f->mod.is_vdso || f->mod.is_ldso)
			continue;
		if (mem_read_str(ld->t->pid, f->l_name, name, sizeof(name)))
			name[0] = 0;
		v[n].name = strdup(name[0] ? name : f->mod.path);
		v[n].elf = f->mod.elf;
		v[n].index = i;
		err = v[n++].name ? 0 : -ENOMEM;
	}
	if (!err)
		err = preload_mark(prog->mod.elf, v, n);
	for (i = 0; i < n; i++) {
		ld->v[v[i].index].mod.preloaded = !err && v[i].preloaded;
		free(v[i].name);
	}
	free(v);
	return err;
}

static int hand_over(struct loader *ld, struct modules *out)
{
	size_t i;

	out->priv = calloc(1, sizeof(*out->priv));
	if (!out->priv)
		return -ENOMEM;
	out->priv->procfd = fcntl(ld->t->procfd, F_DUPFD_CLOEXEC, 0);
	if (out->priv->procfd < 0)
		return -errno;
	out->priv->extra = calloc(ld->n + 1, sizeof(*out->priv->extra));
	out->v = calloc(ld->n + 1, sizeof(*out->v));
	if (!out->priv->extra || !out->v)
		return -ENOMEM;
	for (i = 0; i < ld->n; i++) {
		out->v[i] = ld->v[i].mod;
		out->v[i].more = &out->priv->extra[i];
		out->priv->extra[i].all = out->priv;
	}
	out->n = ld->n;
	return 0;
}

static void loader_free(struct loader *ld, bool handed_over)
{
	size_t i;

	for (i = 0; i < ld->n; i++) {
		image_free(&ld->v[i].im);
		if (handed_over)
			continue;
		elf_file_close(ld->v[i].mod.elf);
		free(ld->v[i].mod.path);
	}
	free(ld->v);
}

int modules_load(const struct target *t, const struct maps *maps, struct modules *out,
		 struct diag *d)
{
	struct loader ld = { .t = t, .maps = maps };
	uint64_t budget = COPY_BUDGET;
	size_t i;
	int err;

	*out = (struct modules){ 0 };
	err = read_auxv(&ld, d);
	out->linking = !ld.aux.filled;
	if (!err)
		err = find_images(&ld, d);
	if (err)
		goto out;
	for (i = 0; !err && i < ld.n; i++)
		err = open_file(&ld, &ld.v[i], &budget);
	if (!err)
		err = take_link_map(&ld, out);
	if (!err) {
		if (ld.n)
			qsort(ld.v, ld.n, sizeof(*ld.v), by_rank);
		err = mark_preloaded(&ld, out->base);
	}
	if (!err)
		err = hand_over(&ld, out);
	if (!err)
		err = modules_take_code(out, maps);
	if (err)
		diag_internal(d, err, "listing modules");
out:
	loader_free(&ld, !err);
	if (err) {
		out->n = 0;
		modules_free(out);
	}
	return err;
}
