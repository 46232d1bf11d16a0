// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../inject/elf.h"
#include "toolchain.h"

static const char lib_source[] = "int plain(void) { return 1; }\n"
				 "int other(void) { return 2; }\n"
				 "__attribute__((weak)) int soft(void) { return 3; }\n"
				 "int object = 4;\n"
				 "int zeroed[1000];\n"
				 "__thread int local_to_thread = 5;\n"
				 "static int inner(void) { return 6; }\n"
				 "int calls_inner(void) { return inner() + 1; }\n"
				 "static int (*choose(void))(void) { return plain; }\n"
				 "int chosen(void) __attribute__((ifunc(\"choose\")));\n"
				 "extern int absent(void);\n"
				 "int calls_absent(void) { return absent(); }\n";

static char *dir;

static void setup(void)
{
	dir = tool_dir();
}

static void teardown(void)
{
	tool_clean(dir);
}

TestSuite(elf, .init = setup, .fini = teardown);

static int open_file(const char *name)
{
	char *path = tool_path(dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "cannot open %s", path);
	free(path);
	return fd;
}

static struct elf_file *open_elf(const char *name)
{
	struct elf_file *e;
	int err = elf_file_open(open_file(name), &e);

	cr_assert_eq(err, 0, "%s: %s", name, strerror(-err));
	return e;
}

/* The dynamic linker itself says where a symbol is. */
static void check_by_dlsym(const char *file, const char *name)
{
	struct elf_file *e = open_elf(file);
	char *path = tool_path(dir, file);
	void *h = dlopen(path, RTLD_LAZY);
	struct link_map *lm;
	struct elf_sym s, d;

	cr_assert(h, "%s", dlerror());
	cr_assert_eq(dlinfo(h, RTLD_DI_LINKMAP, &lm), 0);
	cr_assert_eq(elf_file_lookup(e, name, &s), 0, "%s in %s", name, file);
	cr_assert_eq(lm->l_addr + s.value, (uintptr_t)dlsym(h, name), "%s in %s", name, file);
	cr_assert(s.dynamic);
	cr_assert_eq(elf_file_lookup_dynamic(e, name, &d), 0);
	cr_assert_eq(d.value, s.value);
	dlclose(h);
	elf_file_close(e);
	free(path);
}

static void check_library(const char *file)
{
	static const char *const names[] = { "plain", "other", "soft", "object", "calls_inner" };
	struct elf_file *e = open_elf(file);
	struct elf_sym s;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		check_by_dlsym(file, names[i]);
	cr_assert_eq(elf_file_lookup(e, "plain", &s), 0);
	cr_assert_eq(s.type, STT_FUNC);
	cr_assert_eq(s.bind, STB_GLOBAL);
	cr_assert_gt(s.size, 0);
	cr_assert_eq(elf_file_lookup(e, "soft", &s), 0);
	cr_assert_eq(s.bind, STB_WEAK);
	cr_assert_eq(elf_file_lookup(e, "chosen", &s), 0);
	cr_assert_eq(s.type, STT_GNU_IFUNC);
	cr_assert_eq(elf_file_lookup(e, "local_to_thread", &s), 0);
	cr_assert_eq(s.type, STT_TLS);
	cr_assert_eq(s.value, 0, "offset in the block");
	cr_assert_eq(elf_file_lookup(e, "absent", &s), -ENOENT, "undefined");
	cr_assert_eq(elf_file_lookup(e, "nowhere", &s), -ENOENT);
	cr_assert_eq(elf_file_lookup(e, "", &s), -ENOENT);
	cr_assert_eq(elf_file_lookup_dynamic(e, "inner", &s), -ENOENT, "static");
	elf_file_close(e);
}

#define LIB "-shared -fPIC -Wl,-z,lazy "

Test(elf, gnu_hash)
{
	tool_build(dir, "gnu.so", lib_source, LIB "-Wl,--hash-style=gnu");
	check_library("gnu.so");
}

Test(elf, sysv_hash)
{
	tool_build(dir, "sysv.so", lib_source, LIB "-Wl,--hash-style=sysv");
	check_library("sysv.so");
}

/* Makes the section headers disappear from the file. */
static void drop_sections(const char *name)
{
	char *path = tool_path(dir, name);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf64_Ehdr eh;

	cr_assert_eq(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
	cr_assert_eq(ftruncate(fd, (off_t)eh.e_shoff), 0);
	eh.e_shoff = 0;
	eh.e_shnum = 0;
	eh.e_shstrndx = 0;
	cr_assert_eq(pwrite(fd, &eh, sizeof(eh), 0), sizeof(eh));
	close(fd);
	free(path);
}

Test(elf, without_section_headers)
{
	struct elf_file *e;
	struct elf_sym s;

	tool_build(dir, "gnu.so", lib_source, LIB "-Wl,--hash-style=gnu");
	tool_build(dir, "sysv.so", lib_source, LIB "-Wl,--hash-style=sysv");
	drop_sections("gnu.so");
	drop_sections("sysv.so");
	check_library("gnu.so");
	check_library("sysv.so");
	e = open_elf("gnu.so");
	cr_assert_eq(elf_file_lookup(e, "inner", &s), -ENOENT);
	cr_assert(!elf_file_has_symtab(e));
	elf_file_close(e);
}

Test(elf, static_function_from_symtab)
{
	struct elf_file *e;
	struct elf_sym s;

	tool_build(dir, "lib.so", lib_source, LIB);
	e = open_elf("lib.so");
	cr_assert(elf_file_has_symtab(e));
	cr_assert_eq(elf_file_lookup(e, "inner", &s), 0);
	cr_assert_eq(s.bind, STB_LOCAL);
	cr_assert(!s.dynamic);
	elf_file_close(e);
}

Test(elf, default_version_wins)
{
	static const char source[] =
		"int old_way(void) { return 1; }\n"
		"int new_way(void) { return 2; }\n"
		"__asm__(\".symver old_way, way@V1\\n.symver new_way, way@@V2\");\n"
		"int dead_end(void) { return 3; }\n"
		"__asm__(\".symver dead_end, gone@V1\");\n";
	struct elf_file *e;
	struct elf_sym s;
	char *path;
	void *h;

	tool_write(dir, "map", "V1 { global: way; gone; local: *; };\nV2 { global: way; } V1;\n");
	tool_build(dir, "ver.so", source, LIB "-Wl,--version-script=map");
	path = tool_path(dir, "ver.so");
	h = dlopen(path, RTLD_NOW);
	cr_assert(h, "%s", dlerror());
	cr_assert_neq(dlvsym(h, "way", "V1"), dlvsym(h, "way", "V2"), "fixture is not versioned");
	check_by_dlsym("ver.so", "way");
	drop_sections("ver.so");
	e = open_elf("ver.so");
	cr_assert_eq(elf_file_lookup(e, "way", &s), 0);
	cr_assert_eq(elf_file_lookup(e, "gone", &s), 0, "a hidden version is better than none");
	elf_file_close(e);
	dlclose(h);
	check_by_dlsym("ver.so", "way");
	free(path);
}

static const char program_source[] = "int known(void) { return 1; }\n"
				     "int main(void) { return known() - 1; }\n";

Test(elf, pie_and_not_pie)
{
	struct elf_file *e;
	struct elf_sym s;

	tool_build(dir, "pie", program_source, "-pie -fPIE");
	tool_build(dir, "fixed", program_source, "-no-pie -fno-pie");
	e = open_elf("pie");
	cr_assert_eq(elf_file_lookup(e, "known", &s), 0);
	cr_assert_lt(s.value, 0x400000, "to be moved");
	elf_file_close(e);
	e = open_elf("fixed");
	cr_assert_eq(elf_file_lookup(e, "known", &s), 0);
	cr_assert_geq(s.value, 0x400000);
	elf_file_close(e);
}

Test(elf, static_program)
{
	struct elf_file *e;
	struct elf_sym s;

	if (!tool_run(dir, "echo 'int main(void){return 0;}' > t.c && cc -static -o t t.c"))
		cr_skip_test("no static libc here (libc.a of libc6-dev is missing)");
	e = open_elf("t");
	cr_assert_eq(elf_file_lookup(e, "malloc", &s), 0);
	cr_assert(!s.dynamic);
	cr_assert_eq(elf_file_lookup_dynamic(e, "malloc", &s), -ENOENT);
	elf_file_close(e);
}

Test(elf, separate_debug_file)
{
	struct elf_file *e, *other, *dbg;
	struct elf_sym before, s;
	const unsigned char *id, *dbg_id;
	size_t len;

	tool_build(dir, "prog", program_source, "-g -Wl,--build-id=sha1");
	tool_build(dir, "prog2", "int known; int main(void){return known;}",
		   "-g -Wl,--build-id=sha1");
	e = open_elf("prog");
	cr_assert_eq(elf_file_lookup(e, "known", &before), 0);
	elf_file_close(e);
	cr_assert(tool_run(dir, "objcopy --only-keep-debug prog prog.debug && strip prog prog2"));
	e = open_elf("prog");
	other = open_elf("prog2");
	dbg = open_elf("prog.debug");
	cr_assert_eq(elf_file_lookup(e, "known", &s), -ENOENT);
	len = elf_file_build_id(e, &id);
	cr_assert_eq(len, 20);
	cr_assert_eq(elf_file_build_id(dbg, &dbg_id), 20);
	cr_assert_eq(memcmp(id, dbg_id, len), 0);
	cr_assert_eq(elf_file_add_debug(other, dbg), -EINVAL, "another program's");
	cr_assert_eq(elf_file_add_debug(e, dbg), 0);
	cr_assert_eq(elf_file_lookup(e, "known", &s), 0);
	cr_assert_eq(s.value, before.value);
	cr_assert_eq(s.size, before.size);
	elf_file_close(e);
	elf_file_close(other);
}

static int first_needed(const char *s, void *arg)
{
	snprintf(arg, 64, "%s", s);
	return 7;
}

Test(elf, dynamic_strings)
{
	struct elf_file *e;
	char name[64] = "";

	tool_build(dir, "one.so", "int one(void){return 1;}",
		   "-shared -fPIC -Wl,-soname,libone.so.1");
	tool_build(dir, "two.so", "int one(void); int two(void){return one();}",
		   "-shared -fPIC -L. -l:one.so");
	e = open_elf("one.so");
	cr_assert_eq(elf_file_dynstr(e, DT_SONAME, first_needed, name), 7);
	cr_assert_str_eq(name, "libone.so.1");
	cr_assert_eq(elf_file_dynstr(e, DT_RPATH, first_needed, name), 0);
	elf_file_close(e);
	e = open_elf("two.so");
	cr_assert_eq(elf_file_dynstr(e, DT_NEEDED, first_needed, name), 7);
	cr_assert_str_eq(name, "libone.so.1");
	elf_file_close(e);
}

Test(elf, reads_contents_and_zeros)
{
	struct elf_file *e;
	struct elf_sym s;
	char buf[4000];
	int value;

	tool_build(dir, "lib.so", lib_source, LIB);
	e = open_elf("lib.so");
	cr_assert_eq(elf_file_lookup(e, "object", &s), 0);
	cr_assert_eq(elf_file_read(e, s.value, &value, sizeof(value)), 0);
	cr_assert_eq(value, 4);
	cr_assert_eq(elf_file_lookup(e, "zeroed", &s), 0);
	memset(buf, 1, sizeof(buf));
	cr_assert_eq(elf_file_read(e, s.value, buf, sizeof(buf)), 0);
	for (size_t i = 0; i < sizeof(buf); i++)
		cr_assert_eq(buf[i], 0);
	cr_assert_eq(elf_file_read(e, (uint64_t)1 << 40, buf, 1), -EFAULT);
	cr_assert_eq(elf_file_read(e, s.value, buf, SIZE_MAX / 2), -EFAULT);
	elf_file_close(e);
}

struct seen {
	unsigned plain, inner, scoped;
};

static int count(const char *name, const struct elf_sym *s, void *arg)
{
	struct seen *seen = arg;

	if (!strcmp(name, "plain"))
		seen->plain++;
	if (!strcmp(name, "inner")) {
		seen->inner++;
		seen->scoped += s->scoped;
	}
	cr_assert_neq(s->type, STT_FILE);
	return 0;
}

Test(elf, each)
{
	struct elf_file *e;
	struct seen seen = { 0 };

	tool_build(dir, "lib.so", lib_source, LIB);
	e = open_elf("lib.so");
	cr_assert_eq(elf_file_each(e, count, &seen), 0);
	cr_assert_eq(seen.plain, 2, "once in each table");
	cr_assert_eq(seen.inner, 1);
	cr_assert_eq(seen.scoped, 1);
	elf_file_close(e);
}

static int open_bytes(const void *bytes, size_t len, struct elf_file **e)
{
	int fd = memfd_create("t", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	return elf_file_open(fd, e);
}

/* ---- where the dynamic linker puts an address */

static int count_slot(uint64_t vaddr, void *arg)
{
	size_t *n = arg;

	cr_assert_neq(vaddr, 0);
	return ++*n == 100;
}

static size_t slots(const char *source, const char *flags, const char *name)
{
	struct elf_file *e;
	size_t n = 0, budget = 1 << 20, left = budget;
	bool read;

	tool_build(dir, "slots.so", source, flags);
	e = open_elf("slots.so");
	cr_assert_eq(elf_file_slots(e, name, &left, count_slot, &n), 0);
	read = left < budget;
	cr_assert(read || !n);
	/* what would read too much is told */
	left = 0;
	cr_assert_eq(elf_file_slots(e, name, &left, count_slot, &n), read ? -EFBIG : 0);
	elf_file_close(e);
	return n;
}

Test(elf, slots)
{
	static const char calls[] = "#include <stdlib.h>\n"
				    "void *f(void) { return malloc(1); }\n";
	static const char points[] = "#include <stdlib.h>\n"
				     "void *(*p)(size_t) = malloc;\n"
				     "void *g(void) { return (void *)malloc; }\n"
				     "void *f(void) { return malloc(1); }\n";
	static const char own[] = "#include <stddef.h>\n"
				  "void *malloc(size_t n) { return n ? NULL : &n; }\n"
				  "void *f(void) { return malloc(1); }\n";

	cr_assert_eq(slots(calls, "-shared -fPIC", "malloc"), 1);
	cr_assert_eq(slots(calls, "-shared -fPIC -fno-plt", "malloc"), 1);
	cr_assert_eq(slots(calls, "-shared -fPIC -Wl,-z,now -Wl,--hash-style=sysv", "malloc"), 1);
	cr_assert_geq(slots(points, "-shared -fPIC", "malloc"), 2);
	cr_assert_eq(slots(calls, "-shared -fPIC", "mallo"), 0);
	cr_assert_eq(slots(calls, "-shared -fPIC", "free"), 0);
	cr_assert_eq(slots(own, "-shared -fPIC", "malloc"), 1, "it may be somebody else's");
	cr_assert_eq(slots(own, "-shared -fPIC -Wl,-Bsymbolic-functions", "malloc"), 0);
}

Test(elf, refuses_what_is_none)
{
	struct elf_file *e;
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(eh) };

	cr_assert_eq(open_bytes("", 0, &e), -ENOEXEC);
	cr_assert_eq(open_bytes("#!/bin/sh\n", 10, &e), -ENOEXEC);
	cr_assert_eq(open_bytes(&eh, sizeof(eh), &e), 0, "an empty one is none the less one");
	elf_file_close(e);
	eh.e_ident[EI_CLASS] = ELFCLASS32;
	cr_assert_eq(open_bytes(&eh, sizeof(eh), &e), -ENOEXEC);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_machine = EM_AARCH64;
	cr_assert_eq(open_bytes(&eh, sizeof(eh), &e), -ENOEXEC);
	eh.e_machine = EM_X86_64;
	eh.e_phnum = 9;
	eh.e_phentsize = sizeof(Elf64_Phdr);
	eh.e_phoff = 1 << 20;
	cr_assert_eq(open_bytes(&eh, sizeof(eh), &e), -EBADMSG);
}

static int swallow(const char *name, const struct elf_sym *s, void *arg)
{
	size_t *sum = arg;

	*sum += strlen(name) + (size_t)s->size;
	return 0;
}

static int swallow_str(const char *s, void *arg)
{
	size_t *sum = arg;

	*sum += strlen(s);
	return 0;
}

static int swallow_slot(uint64_t vaddr, void *arg)
{
	*(size_t *)arg += vaddr;
	return 0;
}

static void exercise(struct elf_file *e)
{
	size_t budget = 1 << 20;
	static const char *const names[] = { "plain", "way", "inner", "chosen", "nowhere", "main" };
	uint64_t vaddr, size;
	struct elf_sym s;
	char buf[256];
	size_t sum = 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!elf_file_lookup(e, names[i], &s))
			rc |= elf_file_read(e, s.value, buf, sizeof(buf));
		rc |= elf_file_lookup_dynamic(e, names[i], &s);
	}
	rc |= elf_file_each(e, swallow, &sum);
	rc |= elf_file_dynstr(e, DT_NEEDED, swallow_str, &sum);
	rc |= elf_file_slots(e, "absent", &budget, swallow_slot, &sum);
	rc |= elf_file_section(e, ".eh_frame", &vaddr, &size);
	(void)rc;
}

static void fuzz(const char *name, unsigned rounds, unsigned seed)
{
	struct elf_file *e;
	struct stat st;
	int fd = open_file(name);
	unsigned char *good, *bad;
	size_t len, cut, at;

	cr_assert_eq(fstat(fd, &st), 0);
	len = (size_t)st.st_size;
	good = malloc(len);
	bad = malloc(len);
	cr_assert(good && bad && read(fd, good, len) == (ssize_t)len);
	close(fd);
	srand(seed);
	for (unsigned r = 0; r < rounds; r++) {
		unsigned flips = 1 + (unsigned)rand() % 24;

		memcpy(bad, good, len);
		while (flips--) {
			/* headers and tables at both ends are where it hurts */
			switch (rand() % 4) {
			case 0:
				at = (size_t)rand() % 1024;
				break;
			case 1:
				at = len - 1 - (size_t)rand() % 2048;
				break;
			default:
				at = (size_t)rand() % len;
				break;
			}
			bad[at] = (unsigned char)(rand() % 3 ? rand() : rand() % 2 ? 0xff : 0);
		}
		cut = rand() % 8 ? len : (size_t)rand() % len;
		if (open_bytes(bad, cut, &e))
			continue;
		exercise(e);
		elf_file_close(e);
	}
	free(good);
	free(bad);
}

Test(elf, survives_damage, .timeout = 300)
{
	tool_build(dir, "gnu.so", lib_source, LIB "-Wl,--hash-style=gnu");
	tool_build(dir, "sysv.so", lib_source, LIB "-Wl,--hash-style=sysv");
	tool_build(dir, "bare.so", lib_source, LIB);
	drop_sections("bare.so");
	fuzz("gnu.so", 1500, 1);
	fuzz("sysv.so", 1500, 2);
	fuzz("bare.so", 1500, 3);
}

Test(elf, build_id_note)
{
	struct {
		Elf64_Nhdr h;
		char name[4];
		unsigned char id[4];
	} n = { .h = { 4, 4, NT_GNU_BUILD_ID }, .name = "GNU", .id = { 1, 2, 3, 4 } };
	const unsigned char *id;

	cr_assert_eq(elf_note_build_id(&n, sizeof(n), 4, &id), 4);
	cr_assert_eq(id[3], 4);
	for (size_t cut = 0; cut < sizeof(n); cut++)
		cr_assert_eq(elf_note_build_id(&n, cut, 4, &id), 0);
	n.h.n_descsz = UINT32_MAX;
	cr_assert_eq(elf_note_build_id(&n, sizeof(n), 4, &id), 0);
	n.h.n_namesz = UINT32_MAX;
	cr_assert_eq(elf_note_build_id(&n, sizeof(n), 4, &id), 0);
}
