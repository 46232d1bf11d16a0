// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../repl/fold.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *text, unsigned columns, const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&got, &len);

	cr_assert_not_null(f);
	fold_text(f, text, strlen(text), columns);
	cr_assert_eq(fclose(f), 0);
	cr_expect_str_eq(got, want, "%s", got);
	free(got);
}

Test(fold, between_words)
{
	expect("one two three\n", 13, "one two three\n");
	expect("one two three\n", 12, "one two\n  three\n");
	expect("one two three\nfour\n", 8, "one two\n  three\nfour\n");
	expect("one two three\n", 0, "one two three\n");
	expect("one two three", 8, "one two\n  three");
	expect("", 8, "");
	expect("\n\n", 8, "\n\n");
}

Test(fold, below_its_label)
{
	expect("in force  trim_threshold 1, mmap_threshold 2\n", 32,
	       "in force  trim_threshold 1,\n          mmap_threshold 2\n");
	/* no label that long */
	expect("a long line of text here  and more of it\n", 30,
	       "a long line of text here  and\n  more of it\n");
}

Test(fold, tables_and_long_words_stay_whole)
{
	expect("a   12  some detail\n", 10, "a   12  some detail\n");
	expect("0123456789abcdef\n", 10, "0123456789abcdef\n");
	expect("see 0123456789abcdef x\n", 10, "see\n  0123456789abcdef\n  x\n");
	expect("  a b c d e f\n", 8, "  a b c\n  d e f\n");
}

Test(fold, colours_take_no_room)
{
	expect("\033[32mone\033[0m two three\n", 13, "\033[32mone\033[0m two three\n");
	expect("\033[32mone\033[0m two three\n", 8, "\033[32mone\033[0m two\n  three\n");
	expect("\303\244\303\244\303\244 \303\244\303\244\303\244\n", 7,
	       "\303\244\303\244\303\244 \303\244\303\244\303\244\n");
}

Test(fold, a_number_keeps_its_unit)
{
	expect("takes 300.4 MiB, 0 B more\n", 12, "takes\n  300.4 MiB,\n  0 B more\n");
	expect("it took 12 ms (100 %) of 3 threads\n", 12,
	       "it took\n  12 ms\n  (100 %) of\n  3 threads\n");
}

/* Nothing is lost or added but line breaks and blanks. */
Test(fold, garbage)
{
	static const char alphabet[] = "ab  \n\t\033m";
	unsigned seed = 4;

	for (int round = 0; round < 3000; round++) {
		char text[60], *got = NULL;
		size_t len = (size_t)(rand_r(&seed) % 60), n = 0, at = 0;
		FILE *f = open_memstream(&got, &n);

		cr_assert_not_null(f);
		for (size_t i = 0; i < len; i++)
			text[i] = alphabet[rand_r(&seed) % (int)(sizeof(alphabet) - 1)];
		fold_text(f, text, len, (unsigned)round % 20);
		cr_assert_eq(fclose(f), 0);
		for (size_t i = 0; i < len; i++) {
			if (text[i] == ' ' || text[i] == '\n')
				continue;
			while (got[at] == ' ' || got[at] == '\n')
				at++;
			cr_assert_eq(got[at++], text[i], "%d", round);
		}
		free(got);
	}
}
