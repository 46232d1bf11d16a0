// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/mallctl.h"
#include "../../agent/prof_state.h"

static void set(struct prof_state *s, enum prof_name n, uint64_t v)
{
	s->known[n] = true;
	s->value[n] = v;
}

/* A build with profiling; enabled at its start or not. */
static struct prof_state state(bool enabled)
{
	struct prof_state s = { 0 };

	set(&s, PROF_COMPILED, 1);
	set(&s, PROF_LIBGCC, 1);
	set(&s, PROF_LIBUNWIND, 0);
	set(&s, PROF_ENABLED, enabled);
	set(&s, PROF_LG_SAMPLE, 19);
	return s;
}

Test(prof_state, its_names_are_those_of_mallctl)
{
	for (unsigned i = 0; i < PROF_NAMES; i++) {
		size_t size;
		const char *name = prof_name_text((enum prof_name)i, &size);
		const struct ctl_name *row;

		cr_assert_not_null(name);
		row = ctl_find(name);
		cr_assert_not_null(row, "%s", name);
		cr_expect_eq(ctl_size(row->type), size, "%s", name);
		cr_expect(row->access & CTL_READ, "%s", name);
	}
}

Test(prof_state, the_rate_is_what_is_in_force)
{
	struct prof_state s = state(true);

	cr_expect_eq(prof_sample_bytes(&s), 512 * 1024);
	set(&s, PROF_LG_SAMPLE, 0);
	cr_expect_eq(prof_sample_bytes(&s), 1);
	set(&s, PROF_LG_SAMPLE, 63);
	cr_expect_eq(prof_sample_bytes(&s), 1ull << 63);
	set(&s, PROF_LG_SAMPLE, 64);
	cr_expect_eq(prof_sample_bytes(&s), 0);
	/* jemalloc has a number there too, but samples nothing */
	s = state(false);
	cr_expect_eq(prof_sample_bytes(&s), 0);
}

Test(prof_state, who_unwinds)
{
	struct prof_state s = { 0 };

	cr_expect_null(prof_unwinder(&s));
	s = state(true);
	cr_expect_str_eq(prof_unwinder(&s), "libgcc");
	set(&s, PROF_LIBUNWIND, 1);
	cr_expect_str_eq(prof_unwinder(&s), "libunwind");
	set(&s, PROF_LIBUNWIND, 0);
	set(&s, PROF_LIBGCC, 0);
	cr_expect_str_eq(prof_unwinder(&s), "gcc's built-in");
	set(&s, PROF_FRAME_POINTER, 1);
	cr_expect_str_eq(prof_unwinder(&s), "frame pointers");
}

Test(prof_state, the_line_for_the_next_start_keeps_what_is_set)
{
	char buf[120], full[200];

	cr_expect_str_eq(prof_conf_line("MALLOC_CONF", NULL, buf, sizeof(buf)),
			 "MALLOC_CONF=prof:true,prof_active:false");
	cr_expect_str_eq(prof_conf_line("_RJEM_MALLOC_CONF", "", buf, sizeof(buf)),
			 "_RJEM_MALLOC_CONF=prof:true,prof_active:false");
	cr_expect_str_eq(prof_conf_line("MALLOC_CONF", "narenas:2", buf, sizeof(buf)),
			 "MALLOC_CONF=narenas:2,prof:true,prof_active:false");
	/* what is no option is not passed on to a terminal or a shell */
	cr_expect_str_eq(prof_conf_line("MALLOC_CONF", "a:b;rm", buf, sizeof(buf)),
			 "MALLOC_CONF=prof:true,prof_active:false");
	cr_expect_str_eq(prof_conf_line("MALLOC_CONF", "a:\033[2J", buf, sizeof(buf)),
			 "MALLOC_CONF=prof:true,prof_active:false");
	memset(full, 'x', sizeof(full) - 1);
	full[sizeof(full) - 1] = '\0';
	cr_expect_str_eq(prof_conf_line("MALLOC_CONF", full, buf, sizeof(buf)),
			 "MALLOC_CONF=prof:true,prof_active:false");
}

Test(prof_state, says_why_nothing_can_be_sampled)
{
	struct prof_state s = { 0 };
	struct diag d;

	cr_expect_eq(prof_check(&s, 7, "", &d), -ENOENT);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_expect_str_eq(d.code, "prof-not-built");
	cr_expect_not_null(strstr(d.text, "config.prof is false"), "%s", d.text);
	cr_expect_not_null(strstr(d.hint, "--enable-prof"), "%s", d.hint);
	s = state(false);
	cr_expect_eq(prof_check(&s, 7, "JE_MALLOC_CONF=prof:true", &d), -ENOENT);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_expect_str_eq(d.code, "prof-not-enabled");
	cr_expect_not_null(strstr(d.text, "opt.prof is false"), "%s", d.text);
	cr_expect_not_null(strstr(d.hint, " JE_MALLOC_CONF=prof:true "), "%s", d.hint);
	s = state(true);
	cr_expect_eq(prof_check(&s, 7, "", &d), 0);
}
