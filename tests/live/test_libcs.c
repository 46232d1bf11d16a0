// SPDX-License-Identifier: GPL-3.0-or-later
/* A glibc by another name, without symbols, and whose file is not there any more: all the same. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap.h"
#include "own.h"
#include "program.h"
#include "victim.h"

#define PAGE 4096

/* A libc.so.6 of its own for one victim: a link to a copy that has another name. */
struct copy {
	char dir[64], file[96], link[96], env[96];
};

/* The libc that this test itself uses. */
static void find_libc(char *path, size_t size)
{
	char line[PATH_MAX + 128], *at = NULL;
	FILE *f = fopen("/proc/self/maps", "re");

	cr_assert_not_null(f);
	while (!at && fgets(line, sizeof(line), f))
		at = strstr(line, "/libc.so.6") ? strchr(line, '/') : NULL;
	fclose(f);
	cr_assert_not_null(at);
	at[strcspn(at, "\n")] = '\0';
	snprintf(path, size, "%s", at);
}

static void copy_file(const char *from, const char *to)
{
	char buf[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n;

	cr_assert(in >= 0 && out >= 0, "%s to %s: %s", from, to, strerror(errno));
	while ((n = read(in, buf, sizeof(buf))) > 0)
		cr_assert_eq(write(out, buf, (size_t)n), n);
	cr_assert_eq(n, 0);
	close(in);
	close(out);
}

static void copy_make(struct copy *c)
{
	char libc[PATH_MAX];

	snprintf(c->dir, sizeof(c->dir), "/tmp/heapmedic-libc-XXXXXX");
	cr_assert_not_null(mkdtemp(c->dir));
	snprintf(c->file, sizeof(c->file), "%s/runtime-7.bin", c->dir);
	snprintf(c->link, sizeof(c->link), "%s/libc.so.6", c->dir);
	snprintf(c->env, sizeof(c->env), "LD_LIBRARY_PATH=%s", c->dir);
	find_libc(libc, sizeof(libc));
	copy_file(libc, c->file);
	cr_assert_eq(symlink("runtime-7.bin", c->link), 0);
}

static void copy_remove(struct copy *c)
{
	unlink(c->file);
	unlink(c->link);
	cr_assert_eq(rmdir(c->dir), 0);
}

/* No sections, so no .symtab, and a build id of its own, so no separate file of symbols. */
static void strip_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf64_Ehdr e;
	Elf64_Phdr p;
	Elf64_Nhdr n;

	cr_assert_eq(pread(fd, &e, sizeof(e), 0), (ssize_t)sizeof(e));
	for (unsigned i = 0; i < e.e_phnum; i++) {
		off_t at = (off_t)(e.e_phoff + i * sizeof(p));

		cr_assert_eq(pread(fd, &p, sizeof(p), at), (ssize_t)sizeof(p));
		for (at = (off_t)p.p_offset;
		     p.p_type == PT_NOTE && at < (off_t)(p.p_offset + p.p_filesz);
		     at +=
		     (off_t)(sizeof(n) + ((n.n_namesz + 3) & ~3u) + ((n.n_descsz + 3) & ~3u))) {
			cr_assert_eq(pread(fd, &n, sizeof(n), at), (ssize_t)sizeof(n));
			if (n.n_type == NT_GNU_BUILD_ID && n.n_descsz >= 8)
				cr_assert_eq(pwrite(fd, "not that", 8,
						    at + (off_t)sizeof(n) + (off_t)n.n_namesz),
					     8);
		}
	}
	e.e_shoff = 0;
	e.e_shnum = e.e_shstrndx = 0;
	cr_assert_eq(pwrite(fd, &e, sizeof(e), 0), (ssize_t)sizeof(e));
	close(fd);
}

static bool is_mapped(pid_t pid, const char *path, bool deleted)
{
	char name[64], line[PATH_MAX + 128];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "re");
	cr_assert_not_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, path) && !strstr(line, "(deleted)") == !deleted;
	fclose(f);
	return found;
}

static void check_all(struct victim *v)
{
	own_check(v);
	own_check_caches(v, -1);
}

enum fate { STAYS, DELETED, REPLACED };

static void with_copy(bool stripped, enum fate fate)
{
	struct victim_plan plan = { .argv = { "@cached" } };
	static struct state before;
	struct copy c;
	struct victim v;

	copy_make(&c);
	if (stripped)
		strip_file(c.file);
	plan.env = c.env;
	victim_start(&v, &plan);
	if (fate != STAYS)
		unlink(c.file);
	/* an upgrade: another file, in which nothing is where it was */
	if (fate == REPLACED)
		copy_file("/proc/self/exe", c.file);
	cr_assert(is_mapped(v.pid, c.file, fate != STAYS));
	state_take(&v, &before);
	check_all(&v);
	heap_check_info(v.pid);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
	copy_remove(&c);
}

Test(libcs, renamed)
{
	with_copy(false, STAYS);
}

Test(libcs, renamed_and_deleted)
{
	with_copy(false, DELETED);
}

Test(libcs, renamed_and_replaced)
{
	with_copy(false, REPLACED);
}

Test(libcs, stripped)
{
	with_copy(true, STAYS);
}

Test(libcs, stripped_and_deleted)
{
	with_copy(true, DELETED);
}

/* ---- static programs: the file of the program is glibc's too */

static void with_static(bool deleted)
{
	char path[] = "/tmp/heapmedic-static-XXXXXX";
	struct victim_plan plan = { .argv = { path } };
	struct victim v;

	cr_assert_neq(mkdtemp(path), NULL);
	cr_assert_eq(rmdir(path), 0);
	copy_file(victim_path("cachedstatic"), path);
	victim_start(&v, &plan);
	if (deleted)
		cr_assert_eq(unlink(path), 0);
	check_all(&v);
	victim_stop(&v);
	unlink(path);
}

/* Without symbols no call can be made, and no thread's cache be found; the heap can. */
static void strip_symbols(const char *path)
{
	const struct run_opts o = { .program = "strip" };
	const char *const args[] = { path, NULL };
	struct run r;

	run_with(&r, &o, args);
	run_expect(&r, 0);
	run_free(&r);
}

static void with_stripped_static(const char *name, const char *arg)
{
	char path[] = "/tmp/heapmedic-static-XXXXXX";
	struct victim_plan plan = { .argv = { path, arg } };
	static struct state before;
	struct victim v;
	struct run r;
	json_t *o;

	cr_assert_neq(mkdtemp(path), NULL);
	cr_assert_eq(rmdir(path), 0);
	copy_file(victim_path(name), path);
	strip_symbols(path);
	victim_start(&v, &plan);
	state_take(&v, &before);
	own_check(&v);
	o = heap_ask(v.pid, "threads", NULL);
	cr_assert(json_is_null(json_at(o, "result.threads.0.tcache_bytes")));
	json_decref(o);
	run(&r, v.pid, "trim", NULL);
	run_expect(&r, 5);
	cr_assert_not_null(strstr(r.err, "static without symbols"), "%s", r.err);
	run_free(&r);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
	unlink(path);
}

Test(libcs, static_program_without_symbols)
{
	with_stripped_static("shapesstatic", "arenas");
	with_stripped_static("shapesstatic", "mmapped");
	with_stripped_static("cachedstatic", NULL);
}

Test(libcs, static_program)
{
	with_static(false);
}

Test(libcs, static_program_that_is_deleted)
{
	with_static(true);
}
