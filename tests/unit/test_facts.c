// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/facts.h"

#include <criterion/criterion.h>
#include <string.h>

Test(facts, each_has_a_name_of_its_own)
{
	for (unsigned i = 0; i < FACT_COUNT; i++) {
		const struct fact_info *f = fact_info((enum fact_id)i);

		cr_assert(f->name && f->meaning, "fact %u", i);
		cr_assert_eq(fact_by_name(f->name), (enum fact_id)i, "%s twice", f->name);
		cr_assert_eq(strspn(f->name, "abcdefghijklmnopqrstuvwxyz._"), strlen(f->name));
	}
	cr_assert_eq(fact_by_name("glibc"), FACT_COUNT);
	cr_assert_eq(fact_by_name(""), FACT_COUNT);
}

Test(facts, unknown_is_not_zero)
{
	struct facts f = { 0 };

	cr_assert(!facts_known(&f, FACT_RSS));
	facts_set(&f, FACT_RSS, FROM_KERNEL, 0);
	cr_assert(facts_known(&f, FACT_RSS));
	cr_assert_eq(facts_get(&f, FACT_RSS), 0);
	facts_set_share(&f, FACT_CGROUP_FRACTION, FROM_KERNEL, 1, 0);
	cr_assert(!facts_known(&f, FACT_CGROUP_FRACTION), "of nothing");
	facts_set_share(&f, FACT_CGROUP_FRACTION, FROM_KERNEL, 1, 4);
	cr_assert_eq(f.v[FACT_CGROUP_FRACTION].fraction, 0.25);
	facts_set_share(&f, FACT_CGROUP_FRACTION, FROM_KERNEL, 5, 4);
	cr_assert_eq(f.v[FACT_CGROUP_FRACTION].fraction, 1);
	facts_set_text(&f, FACT_GLIBC_VERSION, FROM_PASSIVE, "");
	cr_assert(!facts_known(&f, FACT_GLIBC_VERSION));
	facts_set_text(&f, FACT_GLIBC_VERSION, FROM_PASSIVE, "2.36");
	cr_assert_str_eq(f.v[FACT_GLIBC_VERSION].text, "2.36");
	cr_assert_str_eq(origin_name(f.v[FACT_GLIBC_VERSION].origin), "passive");
}
