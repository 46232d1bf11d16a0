// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/environ.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "child.h"

static struct environ made(const char *text, size_t len)
{
	struct environ e = { .text = malloc(len + 1), .len = len };

	cr_assert_not_null(e.text);
	memcpy(e.text, text, len);
	e.text[len] = '\0';
	return e;
}

Test(environ, whole_names_only)
{
	static const char text[] = "A=1\0AB=2\0=x\0EMPTY=\0A=3\0noequals\0CUT=of";
	struct environ e = made(text, sizeof(text) - 1);

	cr_assert_str_eq(environ_get(&e, "A"), "1");
	cr_assert_str_eq(environ_get(&e, "AB"), "2");
	cr_assert_str_eq(environ_get(&e, "EMPTY"), "");
	cr_assert_str_eq(environ_get(&e, "CUT"), "of");
	cr_assert_null(environ_get(&e, "noequals"));
	cr_assert_null(environ_get(&e, "B"));
	environ_free(&e);
	cr_assert_null(environ_get(&e, "A"), "nothing is in an empty one");
}

Test(environ, of_a_process)
{
	struct environ e;
	struct target t;
	struct diag d;
	pid_t pid;

	/* a fork shows the environment that its program was started with, as we do ourselves */
	pid = child_start(child_sleep, NULL);
	cr_assert_eq(target_open(pid, &t, &d), 0);
	cr_assert_eq(environ_read(&t, &e), 0);
	cr_assert_str_eq(environ_get(&e, "PATH"), getenv("PATH"));
	environ_free(&e);
	target_close(&t);
	child_end(pid);
}

Test(environ, tunables)
{
	uint64_t v = 0;

	cr_assert_eq(tunable_get("glibc.malloc.arena_max=2:glibc.malloc.check=3",
				 "glibc.malloc.arena_max", &v),
		     0);
	cr_assert_eq(v, 2);
	cr_assert_eq(tunable_get("a=1:a=0x10", "a", &v), 0);
	cr_assert_eq(v, 16, "the last one counts");
	cr_assert_eq(tunable_get("a=010", "a", &v), 0);
	cr_assert_eq(v, 8);
	cr_assert_eq(tunable_get("", "a", &v), -ENOENT);
	cr_assert_eq(tunable_get("ab=1:xa=2", "a", &v), -ENOENT);
	cr_assert_eq(tunable_get("a=1x:a=-1:a=:a", "a", &v), -ENOENT);
}

/* What is said of arenas: by whom, and how many; 0: nothing. */
static const struct {
	const char *text;
	size_t len;
	uint64_t n;
	bool tunable;
} caps[] = {
#define CAP(text, n, tunable)                                                                      \
	{                                                                                          \
		text, sizeof(text), n, tunable                                                     \
	}
	CAP("PATH=/bin", 0, false),
	CAP("MALLOC_ARENA_MAX=2", 2, false),
	CAP("MALLOC_ARENA_MAX=0x10", 16, false),
	CAP("MALLOC_ARENA_MAX=0", 0, false),
	CAP("MALLOC_ARENA_MAX=", 0, false),
	CAP("MALLOC_ARENA_MAX=-1", 0, false),
	CAP("MALLOC_ARENA_MAX=two", 0, false),
	CAP("MALLOC_ARENA_MAX=2x", 0, false),
	CAP("MALLOC_ARENA_MAX=99999999999999999999", 0, false),
	CAP("MALLOC_ARENA_MAX_=2", 0, false),
	CAP("GLIBC_TUNABLES=glibc.malloc.arena_max=4", 4, true),
	CAP("GLIBC_TUNABLES=glibc.malloc.check=1:glibc.malloc.arena_max=4", 4, true),
	CAP("GLIBC_TUNABLES=glibc.malloc.arena_max=4\0MALLOC_ARENA_MAX=2", 4, true),
	CAP("MALLOC_ARENA_MAX=2\0GLIBC_TUNABLES=glibc.malloc.arena_max=4", 4, true),
	CAP("MALLOC_ARENA_MAX=2\0GLIBC_TUNABLES=glibc.malloc.arena_max=0", 2, false),
	CAP("MALLOC_ARENA_MAX=2\0GLIBC_TUNABLES=glibc.malloc.check=1", 2, false),
#undef CAP
};

Test(environ, arena_max)
{
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct environ e = made(caps[i].text, caps[i].len);
		uint64_t n = 99;
		bool tunable = !caps[i].tunable;
		int rc = arena_max_get(&e, &n, &tunable);

		cr_expect_eq(rc, caps[i].n ? 0 : -ENOENT, "row %zu", i);
		cr_expect_eq(tunable, caps[i].tunable, "row %zu", i);
		if (caps[i].n)
			cr_expect_eq(n, caps[i].n, "row %zu: %lu", i, (unsigned long)n);
		environ_free(&e);
	}
}

Test(environ, go)
{
	uint64_t bytes;
	int percent;

	cr_assert_eq(gogc_parse("50", &percent), 0);
	cr_assert_eq(percent, 50);
	cr_assert_eq(gogc_parse("off", &percent), 0);
	cr_assert_eq(percent, -1);
	cr_assert_eq(gogc_parse("", &percent), -EINVAL);
	cr_assert_eq(gogc_parse("1e3", &percent), -EINVAL);
	cr_assert_eq(gomemlimit_parse("4GiB", &bytes), 0);
	cr_assert_eq(bytes, 4ULL << 30);
	cr_assert_eq(gomemlimit_parse("off", &bytes), 0);
	cr_assert_eq(bytes, UINT64_MAX);
	cr_assert_eq(gomemlimit_parse("123", &bytes), 0);
	cr_assert_eq(bytes, 123);
	cr_assert_eq(gomemlimit_parse("4GB", &bytes), -EINVAL, "Go knows no such unit");
	cr_assert_eq(gomemlimit_parse("-1", &bytes), -EINVAL);
	cr_assert_eq(gomemlimit_parse("9999999TiB", &bytes), -EINVAL);
	cr_assert_eq(gomemlimit_parse("99999999999999999999", &bytes), -EINVAL);
}
