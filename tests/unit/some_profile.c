// SPDX-License-Identifier: GPL-3.0-or-later
#include "some_profile.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

const char some_text[] = "heap_v2/1\n"
			 "  t*: 9: 758 [0: 0]\n"
			 "@ 0x1010 0x1111 0x1311\n  t*: 1: 100 [0: 0]\n"
			 "@ 0x1010 0x1221 0x1121 0x1311\n  t*: 2: 200 [0: 0]\n"
			 "@ 0x1010 0x1421 0x1231 0x1241 0x1321\n  t*: 4: 400 [0: 0]\n"
			 "@ 0x2000 0x1331\n  t*: 1: 50 [0: 0]\n"
			 "@ 0x1010\n  t*: 1: 8 [0: 0]\n"
			 "MAPPED_LIBRARIES:\n"
			 "00001000-00002000 r-xp 00000000 08:01 77      /opt/program\n"
			 "00002000-00003000 r-xp 00005000 08:01 78      /lib/libstripped.so.1\n";

/* The lines of main are inlined at 0x1330: helper < main. */
static size_t find(void *arg, uint64_t pc, struct symbol_frame *out, size_t max)
{
	static const char *const names[] = { "malloc", "a", "b", "main", "_Znwm" };
	static const char file[] = "src/prog&ram.c";
	size_t at = (size_t)(pc - 0x1000) / 0x100, n = 0;

	(void)arg;
	if (pc < 0x1000 || at >= sizeof(names) / sizeof(names[0]))
		return 0;
	if (pc == 0x1330 && max > 1)
		out[n++] = (struct symbol_frame){
			.name = "helper", .file = file, .line = 9, .inlined = true
		};
	out[n++] = (struct symbol_frame){ .name = names[at],
					  .file = at ? file : NULL,
					  .line = at ? (unsigned)(pc & 0xff) : 0 };
	return n;
}

struct calls *some_calls(const char *text, enum call_names names, struct profile **p)
{
	struct call_source source = { .find = find, .names = names };
	struct calls *c;
	struct diag d;

	if (!text)
		text = some_text;
	cr_assert_eq(profile_parse(text, strlen(text), p, &d), 0);
	cr_assert_eq(calls_make(*p, &source, &c), 0);
	return c;
}

void some_free(struct calls *c, struct profile *p)
{
	calls_free(c);
	profile_free(p);
}
