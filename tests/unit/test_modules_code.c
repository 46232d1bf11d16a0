// SPDX-License-Identifier: GPL-3.0-or-later
/* What may be called, and what an object wants of others: as its file says, and as it is mapped. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../../inject/modules.h"
#include "child.h"
#include "toolchain.h"

static char *dir;

static void setup(void)
{
	dir = tool_dir();
}

static void teardown(void)
{
	tool_clean(dir);
}

TestSuite(modules_code, .init = setup, .fini = teardown);

static const char library[] =
	"int real(void) { return 1; }\n"
	"static int inner(void) { return 2; }\n"
	"int calls_inner(void) { return inner(); }\n"
	"int object = 4;\n"
	"__asm__(\".data; .globl fake; .type fake,@function; fake: .quad 0; .size fake,8;\"\n"
	"\".globl away; .type away,@function; .set away,0x7ffff000;\"\n"
	"\".text; .globl chooser; .type chooser,@gnu_indirect_function; chooser: ret\");\n";

static const struct {
	const char *name;
	int rc;
} functions[] = {
	{ "real", 0 },		{ "inner", 0 },	     /* a local one, of .symtab */
	{ "object", -EFAULT },	{ "fake", -EFAULT }, /* data that says it is a function */
	{ "away", -EFAULT },			     /* the address of nobody */
	{ "chooser", -EFAULT },			     /* a function that chooses one */
	{ "nowhere", -ENOENT },
};

static const struct module *by_name(const struct modules *m, const char *part)
{
	for (size_t i = 0; i < m->n; i++)
		if (strstr(m->v[i].path, part))
			return &m->v[i];
	cr_assert_fail("%s is not mapped", part);
	return NULL;
}

Test(modules_code, only_code_is_a_function)
{
	const struct module *lib;
	struct target t;
	struct maps maps;
	struct modules mods;
	struct symbol s;
	char *path = tool_path(dir, "lib.so");
	pid_t pid;

	tool_build(dir, "lib.so", library, "-O0 -shared -fPIC");
	tool_build(dir, "prog", "#include <unistd.h>\nint main(void) { for (;;) pause(); }", "");
	pid = tool_start(dir, "prog", path);
	child_look(pid, &t, &maps, &mods);
	lib = by_name(&mods, "/lib.so");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		cr_expect_eq(module_function(lib, functions[i].name, &s), functions[i].rc, "%s",
			     functions[i].name);
	cr_expect_eq(module_function(by_name(&mods, "/libc.so"), "malloc", &s), 0);
	/* every program has code, however it is mapped */
	cr_expect_eq(module_function(by_name(&mods, "/prog"), "main", &s), 0);
	cr_expect_eq(module_own_symbol(lib, "inner", &s), 0);
	cr_expect_eq(module_own_symbol(lib, "nowhere", &s), -ENOENT);
	child_look_away(&t, &maps, &mods);
	child_end(pid);
	free(path);
}

static struct elf_file *open_elf(const char *name)
{
	char *path = tool_path(dir, name);
	struct elf_file *e;

	cr_assert_eq(elf_file_open(open(path, O_RDONLY | O_CLOEXEC), &e), 0, "%s", name);
	free(path);
	return e;
}

static const char wants[] = "extern int absent(void);\n"
			    "__attribute__((weak)) extern int perhaps(void);\n"
			    "int here(void) { return absent() + (perhaps ? perhaps() : 0); }\n";

Test(modules_code, imports)
{
	static const char *const flags[] = { "-shared -fPIC -Wl,--hash-style=gnu",
					     "-shared -fPIC -Wl,--hash-style=sysv",
					     "-shared -fPIC -s -Wl,-z,lazy" };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct elf_file *e;

		tool_build(dir, "wants.so", wants, flags[i]);
		e = open_elf("wants.so");
		cr_expect(elf_file_imports(e, "absent"), "%s", flags[i]);
		cr_expect(elf_file_imports(e, "perhaps"), "%s", flags[i]);
		cr_expect_not(elf_file_imports(e, "here"), "%s", flags[i]);
		cr_expect_not(elf_file_imports(e, "absen"), "%s", flags[i]);
		cr_expect_not(elf_file_imports(e, ""), "%s", flags[i]);
		elf_file_close(e);
	}
}

Test(modules_code, symbolic)
{
	static const struct {
		const char *flags;
		bool symbolic;
	} cases[] = {
		{ "-shared -fPIC", false },
		{ "-shared -fPIC -Wl,-Bsymbolic", true },
		{ "-shared -fPIC -Wl,-z,now", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_file *e;

		tool_build(dir, "own.so", wants, cases[i].flags);
		e = open_elf("own.so");
		cr_expect_eq(elf_file_is_symbolic(e), cases[i].symbolic, "%s", cases[i].flags);
		elf_file_close(e);
	}
}
