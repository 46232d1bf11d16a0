// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../inject/image.h"
#include "../../inject/linkmap.h"
#include "../../inject/modules.h"
#include "../../inject/objfile.h"
#include "child.h"
#include "toolchain.h"

/* What is looked at: a running program with its maps and modules. */
struct seen {
	pid_t pid;
	struct target t;
	struct maps maps;
	struct modules mods;
};

static char *dir;

static void setup(void)
{
	dir = tool_dir();
}

static void teardown(void)
{
	tool_clean(dir);
}

TestSuite(modules, .init = setup, .fini = teardown);

static void look(struct seen *s, pid_t pid)
{
	s->pid = pid;
	child_look(pid, &s->t, &s->maps, &s->mods);
}

static void look_away(struct seen *s)
{
	child_look_away(&s->t, &s->maps, &s->mods);
	child_end(s->pid);
}

static const struct module *by_name(const struct modules *m, const char *part)
{
	for (size_t i = 0; i < m->n; i++)
		if (strstr(m->v[i].path, part))
			return &m->v[i];
	return NULL;
}

/* Writes what the program sees of itself: "bias name" of each object, then "=addr name". */
#define TELL                                                                                       \
	"#include <dlfcn.h>\n#include <link.h>\n#include <stdio.h>\n#include <unistd.h>\n"         \
	"static FILE *f;\n"                                                                        \
	"static int one(struct dl_phdr_info *i, size_t n, void *a)\n"                              \
	"{ fprintf(f, \"%lx %s\\n\", (long)i->dlpi_addr, i->dlpi_name); return 0; }\n"             \
	"static void tell(const char *file, const char **sym)\n"                                   \
	"{ f = fopen(file, \"w\"); dl_iterate_phdr(one, 0);\n"                                     \
	"  for (; *sym; sym++)\n"                                                                  \
	"    fprintf(f, \"=%lx %s\\n\", (long)dlsym(RTLD_DEFAULT, *sym), *sym);\n"                 \
	"  fclose(f); }\n"

/* Holds the list against what the program has told. */
static void check_told(const struct seen *s)
{
	char *path = tool_path(dir, "told"), line[512], name[400];
	FILE *f = fopen(path, "r");
	unsigned long value;
	struct symbol sym;
	size_t at = 0, symbols = 0;

	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		name[0] = 0;
		if (sscanf(line, "=%lx %399s", &value, name) == 2) {
			cr_assert_eq(modules_symbol(&s->mods, name, &sym), 0, "%s", name);
			if (sym.type != STT_GNU_IFUNC)
				cr_assert_eq(sym.addr, value, "%s", name);
			symbols++;
			continue;
		}
		cr_assert_geq(sscanf(line, "%lx %399s", &value, name), 1);
		cr_assert_lt(at, s->mods.base);
		cr_assert_eq(s->mods.v[at].bias, value, "place %zu: %s is not %s", at,
			     s->mods.v[at].path, name);
		at++;
	}
	cr_assert_eq(at, s->mods.base);
	cr_assert_gt(symbols, 0);
	fclose(f);
	free(path);
}

static const char program[] =
	TELL "int who(void);\nint deep(void);\n"
	     "int main(void)\n"
	     "{ const char *s[] = { \"who\", \"deep\", \"main_only\", \"malloc\", \"fopen\", 0 };\n"
	     "  who(); tell(\"told\", s); for (;;) pause(); }\n"
	     "int main_only(void) { return deep(); }\n";

/* a.so needs b.so; both define who. */
static void build_program(const char *flags)
{
	char all[512];

	tool_build(dir, "libb.so", "int who(void){return 2;} int deep(void){return 3;}",
		   "-shared -fPIC -Wl,-soname,libb.so");
	tool_build(dir, "liba.so", "int deep(void); int who(void){return deep();}",
		   "-shared -fPIC -L. -lb -Wl,-rpath,. -Wl,-soname,liba.so");
	tool_build(dir, "p0.so", "int who(void){return 4;}", "-shared -fPIC");
	tool_build(dir, "p1.so", "int other(void){return 5;}", "-shared -fPIC");
	snprintf(all, sizeof(all), "%s -rdynamic -L. -la -lb -Wl,-rpath,'%s' -Wl,-rpath-link,.",
		 flags, dir);
	tool_build(dir, "prog", program, all);
}

static pid_t start_here(const char *preload)
{
	cr_assert_eq(chdir(dir), 0);
	return tool_start(dir, "prog", preload);
}

static void check_order(const char *flags)
{
	const struct module *prog;
	struct seen s;

	build_program(flags);
	look(&s, start_here(NULL));
	cr_assert(s.mods.link_order);
	prog = by_name(&s.mods, "/prog");
	cr_assert(prog && prog->is_main && prog->has_interp && prog->elf && prog->link_map);
	cr_assert_eq(prog, &s.mods.v[0]);
	cr_assert(by_name(&s.mods, "/ld-linux")->is_ldso);
	check_told(&s);
	for (size_t i = 0; i < s.mods.n; i++) {
		cr_assert(!s.mods.v[i].preloaded, "%s", s.mods.v[i].path);
		cr_assert_eq(modules_at(&s.mods, s.mods.v[i].text_start), &s.mods.v[i]);
	}
	cr_assert_null(modules_at(&s.mods, 0));
	look_away(&s);
}

Test(modules, link_order_of_a_pie)
{
	check_order("-pie -fPIE");
}

Test(modules, link_order_of_a_fixed_program)
{
	check_order("-no-pie -fno-pie");
}

Test(modules, preloaded)
{
	struct seen s;
	char *list;

	build_program("");
	/* libb.so is among the program's own, so that only the two others count */
	cr_assert_geq(asprintf(&list, "%s/p1.so:%s/libb.so:%s/p0.so", dir, dir, dir), 0);
	look(&s, start_here(list));
	check_told(&s);
	cr_assert(by_name(&s.mods, "/p0.so")->preloaded);
	cr_assert(by_name(&s.mods, "/p1.so")->preloaded);
	for (size_t i = 0; i < s.mods.n; i++)
		cr_assert_eq(s.mods.v[i].preloaded,
			     strstr(s.mods.v[i].path, "/p0.so") ||
				     strstr(s.mods.v[i].path, "/p1.so"),
			     "%s", s.mods.v[i].path);
	free(list);
	look_away(&s);
}

Test(modules, started_by_the_dynamic_linker)
{
	struct seen s;

	build_program("-pie -fPIE");
	cr_assert_eq(chdir(dir), 0);
	tool_write(dir, "by_ld.c",
		   "#include <unistd.h>\nint main(void){execl(\"/lib64/ld-linux-x86-64.so.2\","
		   "\"ld\",\"./prog\",(char*)0);return 1;}\n");
	cr_assert(tool_run(dir, "cc -o by_ld by_ld.c"));
	look(&s, tool_start(dir, "by_ld", NULL));
	cr_assert(by_name(&s.mods, "/prog")->is_main);
	cr_assert(by_name(&s.mods, "/ld-linux")->is_ldso);
	cr_assert(!by_name(&s.mods, "/ld-linux")->is_main);
	check_told(&s);
	look_away(&s);
}

Test(modules, symbol_of_one_module)
{
	struct symbol a, b, any;
	struct seen s;

	build_program("");
	look(&s, start_here(NULL));
	cr_assert_eq(module_symbol(by_name(&s.mods, "/liba.so"), "who", &a), 0);
	cr_assert_eq(module_symbol(by_name(&s.mods, "/libb.so"), "who", &b), 0);
	cr_assert_eq(modules_symbol(&s.mods, "who", &any), 0);
	cr_assert_neq(a.addr, b.addr);
	cr_assert_eq(any.addr, a.addr, "the first in link order");
	cr_assert_eq(any.mod, a.mod);
	cr_assert_eq(modules_symbol(&s.mods, "one", &any), -ENOENT, "a static function");
	cr_assert_eq(module_symbol(by_name(&s.mods, "/prog"), "one", &any), 0);
	cr_assert_eq(module_symbol(by_name(&s.mods, "/prog"), "nowhere", &any), -ENOENT);
	look_away(&s);
}

Test(modules, describes_addresses)
{
	struct symbol sym;
	char name[64];
	uint64_t off;
	struct seen s;

	build_program("");
	look(&s, start_here(NULL));
	cr_assert_eq(modules_symbol(&s.mods, "main_only", &sym), 0);
	module_describe(sym.mod, sym.addr + 3, name, sizeof(name), &off);
	cr_assert_str_eq(name, "main_only");
	cr_assert_eq(off, 3);
	module_describe(sym.mod, sym.mod->start, name, sizeof(name), &off);
	cr_assert_str_eq(name, "", "no function there");
	look_away(&s);
}

Test(modules, deleted_and_replaced_files)
{
	const struct module *a, *b;
	struct symbol sym;
	struct seen s;
	pid_t pid;

	build_program("");
	pid = start_here(NULL);
	cr_assert(tool_run(dir, "rm libb.so && cp p1.so new && mv new liba.so"));
	look(&s, pid);
	a = by_name(&s.mods, "/liba.so");
	b = by_name(&s.mods, "/libb.so");
	cr_assert(a->elf && b->elf);
	check_told(&s);
	cr_assert_eq(module_symbol(a, "who", &sym), 0);
	cr_assert_eq(module_symbol(a, "other", &sym), -ENOENT, "that is the new file's");
	look_away(&s);
}

/* Without the right to use map_files there is no file: then the memory is read. */
Test(modules, symbols_from_memory)
{
	const struct module *libc;
	struct elf_sym file, mem;
	static const char *const names[] = { "malloc", "fopen", "pthread_create", "environ" };
	struct elf_file *e;
	struct image im;
	struct seen s;
	uint64_t budget;
	int fd;

	build_program("");
	look(&s, start_here(NULL));
	for (size_t i = 0; i < s.mods.n; i++) {
		const struct module *m = &s.mods.v[i];

		if (m->is_vdso || m->is_main)
			continue;
		cr_assert_eq(image_read(s.pid, m->start, &im), 0, "%s", m->path);
		budget = (uint64_t)1 << 30;
		cr_assert_eq(image_to_file(&im, &budget, &fd), 0, "%s", m->path);
		cr_assert_lt(budget, (uint64_t)1 << 30);
		cr_assert_eq(elf_file_open(fd, &e), 0, "%s", m->path);
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
			int err = elf_file_lookup_dynamic(m->elf, names[k], &file);

			cr_assert_eq(elf_file_lookup_dynamic(e, names[k], &mem), err, "%s in %s",
				     names[k], m->path);
			if (!err)
				cr_assert_eq(mem.value, file.value, "%s", names[k]);
		}
		elf_file_close(e);
		budget = 64; /* no segment is as small */
		cr_assert_eq(image_to_file(&im, &budget, &fd), -EFBIG, "%s", m->path);
		image_free(&im);
	}
	libc = modules_glibc(&s.mods);
	cr_assert(libc);
	look_away(&s);
}

Test(modules, glibc_and_its_version)
{
	const struct module *libc;
	char version[32];
	struct seen s;

	build_program("");
	look(&s, start_here(NULL));
	libc = modules_glibc(&s.mods);
	cr_assert(libc && strstr(libc->path, "/libc"), "%s", libc ? libc->path : "none");
	cr_assert(!modules_musl(&s.mods));
	cr_assert_eq(modules_glibc_version(libc, version, sizeof(version)), 0);
	cr_assert_str_eq(version, gnu_get_libc_version());
	cr_assert_eq(modules_glibc_version(by_name(&s.mods, "/prog"), version, sizeof(version)),
		     -ENOENT);
	look_away(&s);
}

static const char sleeper[] = "#include <stdlib.h>\n#include <unistd.h>\n"
			      "int main(void){free(malloc(9)); for(;;) pause();}\n";

static void check_static(const char *flags)
{
	struct symbol sym;
	struct seen s;

	tool_write(dir, "st.c", sleeper);
	if (!tool_run(dir, "cc %s -o st st.c", flags))
		cr_skip_test("no static libc here (libc.a of libc6-dev is missing)");
	look(&s, tool_start(dir, "st", NULL));
	cr_assert(!s.mods.link_order);
	cr_assert_eq(s.mods.base, 0);
	cr_assert_eq(modules_symbol(&s.mods, "malloc", &sym), 0);
	cr_assert(sym.mod->is_main && !sym.mod->has_interp);
	cr_assert_eq(modules_glibc(&s.mods), sym.mod);
	cr_assert(!modules_musl(&s.mods));
	look_away(&s);
}

Test(modules, static_glibc)
{
	check_static("-static");
}

Test(modules, static_pie_glibc)
{
	check_static("-static-pie");
}

static void check_musl(const char *flags)
{
	struct seen s;

	tool_write(dir, "mu.c", sleeper);
	if (!tool_run(dir, "musl-gcc %s -o mu mu.c 2>/dev/null", flags))
		cr_skip_test("no musl here (package musl-tools is missing)");
	look(&s, tool_start(dir, "mu", NULL));
	cr_assert(modules_musl(&s.mods));
	cr_assert_null(modules_glibc(&s.mods));
	look_away(&s);
}

Test(modules, musl)
{
	check_musl("");
}

Test(modules, static_musl)
{
	check_musl("-static");
}

Test(modules, second_namespace_comes_after)
{
	const struct module *first = NULL;
	struct symbol sym;
	struct seen s;

	tool_build(dir, "plug.so", "int plugged(void){return 1;}", "-shared -fPIC");
	tool_build(dir, "prog",
		   TELL "int main(void){ const char *s[] = { \"malloc\", 0 };\n"
			"if (!dlmopen(LM_ID_NEWLM, \"./plug.so\", RTLD_NOW)) return 1;\n"
			"tell(\"told\", s); for (;;) pause(); }\n",
		   "");
	look(&s, start_here(NULL));
	cr_assert(by_name(&s.mods, "/plug.so"));
	cr_assert_geq(by_name(&s.mods, "/plug.so") - s.mods.v, (ptrdiff_t)s.mods.base);
	cr_assert_eq(modules_symbol(&s.mods, "plugged", &sym), -ENOENT);
	first = modules_glibc(&s.mods);
	cr_assert_lt(first - s.mods.v, (ptrdiff_t)s.mods.base);
	look_away(&s);
}

/* ---- a debug file, and the target's own root */

struct jail {
	const char *root;
};

static void live_in_jail(void *arg)
{
	struct jail *j = arg;

	if (chroot(j->root) || chdir("/"))
		_exit(1);
	child_sleep(NULL);
}

Test(modules, debug_file_below_the_root_of_the_target)
{
	struct jail j = { .root = dir };
	const unsigned char *id;
	struct elf_file *e, *dbg;
	struct elf_sym s;
	char *path;
	pid_t pid;
	int procfd, fd;

	if (geteuid())
		cr_skip_test("chroot(2) needs root");
	tool_build(dir, "prog", "int known(void){return 1;} int main(void){return known();}",
		   "-g -Wl,--build-id=0xabcdef0123456789");
	/* the link is absolute: it must be followed inside the jail */
	cr_assert(tool_run(dir, "mkdir -p usr/lib/debug/.build-id/ab real && "
				"objcopy --only-keep-debug prog real/x && strip prog && "
				"ln -s /real/x usr/lib/debug/.build-id/ab/cdef0123456789.debug"));
	path = tool_path(dir, "prog");
	cr_assert_eq(elf_file_open(open(path, O_RDONLY), &e), 0);
	cr_assert_eq(elf_file_build_id(e, &id), 8);
	pid = child_start(live_in_jail, &j);
	cr_assert(child_reach_call(pid, pid, SYS_pause));
	free(path);
	cr_assert_geq(asprintf(&path, "/proc/%d", (int)pid), 0);
	procfd = open(path, O_PATH | O_DIRECTORY);
	cr_assert_eq(objfile_open_debug(procfd, id, 8, &fd), 0);
	cr_assert_eq(elf_file_open(fd, &dbg), 0);
	cr_assert_eq(elf_file_add_debug(e, dbg), 0);
	cr_assert_eq(elf_file_lookup(e, "known", &s), 0);
	cr_assert_eq(objfile_open_debug(procfd, id, 7, &fd), -ENOENT);
	cr_assert_eq(objfile_open_debug(procfd, id, 1, &fd), -ENOENT);
	elf_file_close(e);
	close(procfd);
	free(path);
	child_end(pid);
}

/* A path that leads to another file, or to none that may be opened. */
Test(modules, opens_only_what_is_mapped)
{
	struct map m;
	struct image im;
	struct seen s;
	int fd;
	char *fifo;

	build_program("");
	look(&s, start_here(NULL));
	m = *maps_find(&s.maps, by_name(&s.mods, "/liba.so")->start);
	cr_assert_eq(image_read(s.pid, m.start, &im), 0);
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), 0);
	close(fd);
	/* wrong bounds: not in map_files, so found by path, and by its inode */
	m.end += 4096;
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), 0);
	close(fd);
	/* other numbers, but the same contents: as overlayfs shows it */
	m.dev_minor++;
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), 0);
	close(fd);
	cr_assert(tool_run(dir, "cp p1.so x && mv x liba.so"));
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), -ESTALE);
	fifo = tool_path(dir, "fifo");
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	m.name = fifo;
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), -EINVAL);
	m.name = "/dev/null";
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), -EINVAL);
	m.name = "/memfd:x";
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), -ENOENT);
	m.deleted = true;
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), -ENOENT);
	free(fifo);
	image_free(&im);
	look_away(&s);
}

/* Every openat2(2) of this process fails from now on, as before Linux 5.6. */
static bool forbid_openat2(int err)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)err & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(f) / sizeof(*f), .filter = f };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void check_without_openat2(int err)
{
	struct map m;
	struct image im;
	struct seen s;
	char *name;
	int fd;

	build_program("");
	look(&s, start_here(NULL));
	m = *maps_find(&s.maps, by_name(&s.mods, "/liba.so")->start);
	cr_assert_eq(image_read(s.pid, m.start, &im), 0);
	m.end += 4096; /* not in map_files */
	if (!forbid_openat2(err))
		cr_skip_test("no seccomp filters here");
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), 0);
	close(fd);
	cr_assert_geq(asprintf(&name, "%s/../%s/liba.so", dir, dir + strlen("/tmp/")), 0);
	m.name = name;
	cr_assert_eq(objfile_open(s.t.procfd, &m, &im, false, &fd), -EXDEV, "dots in a path");
	cr_assert(tool_run(dir, "ln -s liba.so link"));
	free(name);
	name = tool_path(dir, "link");
	m.name = name;
	cr_assert_lt(objfile_open(s.t.procfd, &m, &im, false, &fd), 0, "a link");
	free(name);
	image_free(&im);
	look_away(&s);
}

Test(modules, kernel_without_openat2)
{
	check_without_openat2(ENOSYS);
}

Test(modules, container_that_refuses_openat2)
{
	check_without_openat2(EPERM);
}

/* ---- lists that a hostile target could show */

Test(modules, link_map_that_loops)
{
	struct link_map *lm = child_shared(8 * sizeof(*lm));
	struct {
		int version;
		void *map;
		uint64_t rest[3];
		void *next;
	} *r = child_shared(sizeof(*r));
	struct linkmap out;
	pid_t pid;

	r->version = 2;
	r->map = lm;
	r->next = r;
	for (int i = 0; i < 8; i++) {
		lm[i].l_next = &lm[(i + 1) % 8];
		lm[i].l_prev = i ? &lm[i - 1] : NULL;
	}
	pid = child_start(child_sleep, NULL);
	cr_assert_eq(linkmap_read(pid, (uintptr_t)r, &out), 0);
	cr_assert_gt(out.n, 7);
	cr_assert_leq(out.n, 16384);
	linkmap_free(&out);
	/* a ring whose back links agree */
	lm[0].l_prev = &lm[7];
	r->map = &lm[1];
	lm[1].l_prev = NULL;
	cr_assert_eq(linkmap_read(pid, (uintptr_t)r, &out), 0);
	cr_assert_leq(out.n, 16384);
	linkmap_free(&out);
	r->map = (void *)8;
	r->next = NULL;
	cr_assert_eq(linkmap_read(pid, (uintptr_t)r, &out), -ENOENT);
	cr_assert_eq(linkmap_read(pid, 8, &out), -ENOENT);
	child_end(pid);
}

/* What the dynamic linker has written of its list so far, from the start of a program on. */
Test(modules, a_list_that_is_being_made)
{
	struct dynamic {
		Elf64_Dyn v[3];
		struct r_debug r;
	} *s = child_shared(sizeof(*s));
	const uint64_t at = (uintptr_t)s->v, debug = (uintptr_t)&s->r;
	uint64_t found = 1;
	pid_t pid = child_start(child_sleep, NULL);

	s->v[0].d_tag = DT_NEEDED;
	cr_assert_eq(linkmap_find(pid, at, sizeof(s->v), &found), -ENOENT);
	s->v[1].d_tag = DT_DEBUG;
	cr_assert_eq(linkmap_find(pid, at, sizeof(s->v), &found), 0);
	cr_assert_eq(found, 0);
	cr_assert(linkmap_is_changing(pid, found));
	s->v[1].d_un.d_ptr = debug;
	cr_assert_eq(linkmap_find(pid, at, sizeof(s->v), &found), 0);
	cr_assert_eq(found, debug);
	cr_assert(linkmap_is_changing(pid, debug), "it is empty");
	s->r.r_map = (struct link_map *)s;
	s->r.r_state = RT_ADD;
	cr_assert(linkmap_is_changing(pid, debug));
	s->r.r_state = RT_CONSISTENT;
	cr_assert_not(linkmap_is_changing(pid, debug));
	s->r.r_state = RT_DELETE;
	cr_assert(linkmap_is_changing(pid, debug));
	cr_assert_not(linkmap_is_changing(pid, 8), "nothing can be read there");
	child_end(pid);
}

Test(modules, headers_that_are_damaged)
{
	uint64_t budget;
	struct image im;
	unsigned char *mem = child_shared(8192), good[8192];
	uint64_t self = (uintptr_t)mem;
	char *path;
	pid_t pid;
	int fd, n;

	build_program("");
	path = tool_path(dir, "liba.so");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(read(fd, good, sizeof(good)), (ssize_t)sizeof(good));
	close(fd);
	free(path);
	pid = child_start(child_sleep, NULL);
	srand(5);
	for (unsigned r = 0; r < 3000; r++) {
		memcpy(mem, good, sizeof(good));
		for (int k = rand() % 8; k >= 0; k--)
			mem[rand() % (k % 2 ? 64 : 1024)] =
				(unsigned char)(rand() % 3 ? rand() : 0xff);
		if (image_read(pid, self, &im))
			continue;
		cr_assert_lt(im.start, im.end);
		cr_assert_leq(im.end - im.start, (uint64_t)2 << 40);
		budget = (uint64_t)1 << 30;
		if (r % 16 == 0 && !image_to_file(&im, &budget, &n))
			close(n);
		image_build_id(&im, good + 4096, 64);
		image_free(&im);
	}
	child_end(pid);
}
