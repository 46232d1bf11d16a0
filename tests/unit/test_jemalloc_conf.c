// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/jemalloc_conf.h"
#include "toolchain.h"

static char *dir;

static void start(void)
{
	dir = tool_dir();
}

static void stop(void)
{
	tool_clean(dir);
}

/* A library with that string in it, whose functions have that prefix. */
static void expect(const char *string, const char *prefix, const char *want)
{
	struct allocator a = { .owns_malloc = false };
	struct module mod = { .path = NULL };
	char source[200], buf[40];
	char *path = tool_path(dir, "x.so");
	int fd;

	snprintf(source, sizeof(source), "const char *conf(void)\n{\n\treturn \"%s\";\n}\n",
		 string);
	tool_build(dir, "x.so", source, "-shared -fPIC -O1");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(elf_file_open(fd, &mod.elf), 0);
	snprintf(a.prefix, sizeof(a.prefix), "%s", prefix);
	a.mod = &mod;
	cr_expect_str_eq(jemalloc_conf_name(&a, buf, sizeof(buf)), want, "%s of %s: %s", prefix,
			 string, buf);
	elf_file_close(mod.elf);
	free(path);
}

TestSuite(jemalloc_conf, .init = start, .fini = stop);

Test(jemalloc_conf, is_the_name_that_the_build_has)
{
	expect("JE_MALLOC_CONF", "je_", "JE_MALLOC_CONF");
	expect("_RJEM_MALLOC_CONF", "_rjem_", "_RJEM_MALLOC_CONF");
	expect("MALLOC_CONF", "", "MALLOC_CONF");
	/* its functions got their prefix later */
	expect("MALLOC_CONF", "_rjem_", "MALLOC_CONF");
	/* the beginning of a longer string is none */
	expect("JE_MALLOC_CONFIGURE", "je_", "MALLOC_CONF");
}

Test(jemalloc_conf, without_a_file_is_derived)
{
	struct module mod = { .path = NULL };
	struct allocator a = { .mod = &mod, .prefix = "jemalloc_" };
	char buf[40];

	cr_expect_str_eq(jemalloc_conf_name(&a, buf, sizeof(buf)), "JEMALLOC_MALLOC_CONF");
}
