// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/jemalloc_signs.h"

#define HASH "g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"

static const struct {
	const char *data; /* '|' stands for a NUL byte */
	const char *version;
} found[] = {
	{ "abc|5.3.0-0-" HASH "|def", "5.3.0" },
	{ "|5.2.1-113-" HASH "|", "5.2.1-113" },
	{ "|1.2.3-0-gabc|4.5.0-0-gabcdef0|", "4.5.0" }, /* another project's string before it */
	{ "-g|x-g|-g-g-g|5.3.0-0-" HASH "|", "5.3.0" },
	{ "|5.3.0-0-" HASH, NULL },	 /* goes on behind the data */
	{ "5.3.0-0-" HASH "|", NULL },	 /* may have begun before it */
	{ "|5.3.0-0-" HASH "x|", NULL }, /* not hexadecimal */
	{ "|5.3.0-0-g|", NULL },	 /* no hash */
	{ "|v5.3.0-0-" HASH "|", NULL },
	{ "|5.3-0-" HASH "|", NULL },
	{ "|5.3.0-x-" HASH "|", NULL },
	{ "|5.3.0-0000000-" HASH "|", NULL },
	{ "|55.3.0-0-" HASH "|", NULL },
	{ "|", NULL },
	{ "", NULL },
};

Test(jemalloc_signs, finds_the_version_in_data)
{
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		size_t n = strlen(found[i].data);
		char *data = malloc(n ? n : 1); /* so that a read beyond it is seen */
		char buf[32] = "";
		int rc;

		cr_assert(data);
		for (size_t k = 0; k < n; k++)
			data[k] = found[i].data[k];
		for (size_t k = 0; k < n; k++)
			if (data[k] == '|')
				data[k] = '\0';
		rc = jemalloc_version_find(data, n, buf, sizeof(buf));
		cr_expect_eq(rc, found[i].version ? 0 : -ENOENT, "%s", found[i].data);
		if (found[i].version)
			cr_expect_str_eq(buf, found[i].version);
		free(data);
	}
}

Test(jemalloc_signs, shortens)
{
	char buf[8];

	jemalloc_version_shorten("5.3.0-0-" HASH, buf, sizeof(buf));
	cr_expect_str_eq(buf, "5.3.0");
	jemalloc_version_shorten("home made and long", buf, sizeof(buf));
	cr_expect_str_eq(buf, "home ma");
}

static const struct {
	const char *data; /* '|' stands for a NUL byte */
	bool messages, conf;
	const char *prefix;
} signs[] = {
	{ "|<jemalloc>: Error in %s(): |MALLOC_CONF|", true, true, "" },
	{ "|_RJEM_MALLOC_CONF|<jemalloc>: x|", true, true, "_rjem_" },
	{ "|value of the environment variable JE_MALLOC_CONF|", false, true, "je_" },
	{ "|MALLOC_CONF=x|MALLOC_CONFIG|JEMK_MALLOC_CONF|", false, true, "jemk_" },
	{ "|the variable MALLOC_CONF|JEMK_MALLOC_CONF|", false, true, "jemk_" }, /* as 5.3 has it */
	{ "|A_MALLOC_CONF|B_MALLOC_CONF|", false, true, "a_" }, /* the first counts */
	{ "|A_NAME_THAT_IS_FAR_TOO_LONG_MALLOC_CONF|B_MALLOC_CONF|", false, true, "b_" },
	{ "<jemalloc>:|MALLOC_CONF", false, false, "" }, /* it may go on behind the data */
	{ "", false, false, "" },
};

Test(jemalloc_signs, are_read_from_data)
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		size_t n = strlen(signs[i].data);
		char *data = malloc(n ? n : 1); /* so that a read beyond it is seen */
		struct jemalloc_signs s = { 0 };

		cr_assert(data);
		for (size_t k = 0; k < n; k++)
			data[k] = signs[i].data[k] == '|' ? '\0' : signs[i].data[k];
		jemalloc_signs_add(data, n, &s);
		cr_expect_eq(s.messages, signs[i].messages, "%s", signs[i].data);
		cr_expect_eq(s.conf, signs[i].conf, "%s", signs[i].data);
		cr_expect_str_eq(s.prefix, signs[i].prefix);
		free(data);
	}
}
