// SPDX-License-Identifier: GPL-3.0-or-later
/* Conditions of runbooks, over facts of which some are not known. */
#include <stdlib.h>
#include <string.h>

#include "../../repl/expr.h"
#include "fuzz.h"

const char fuzz_name[] = "expr";

/* Each fact is known or not, small or large, by bits of seed. */
static void some_facts(struct facts *f, uint64_t seed)
{
	memset(f, 0, sizeof(*f));
	for (unsigned id = 0; id < FACT_COUNT; id++) {
		uint64_t bits = seed >> (id * 7 % 61);

		if (!(bits & 3))
			continue;
		if (fact_info((enum fact_id)id)->kind == KIND_TEXT)
			facts_set_text(f, (enum fact_id)id, FROM_PASSIVE, "5.3.0-113-g");
		else if (fact_info((enum fact_id)id)->kind == KIND_FRACTION)
			facts_set_share(f, (enum fact_id)id, FROM_CALL, bits & 255, 255);
		else
			facts_set(f, (enum fact_id)id, FROM_KERNEL, bits & 4 ? seed : bits & 15);
	}
}

static enum expr_truth negated(enum expr_truth t)
{
	return t == EXPR_UNKNOWN ? t : t == EXPR_TRUE ? EXPR_FALSE : EXPR_TRUE;
}

/* The same in parentheses under `not`, as far as it is not too deep then. */
static void check_not(const char *text, const struct facts *f, enum expr_truth t)
{
	size_t n = strlen(text);
	char *more = malloc(n + sizeof("not ()"));
	struct expr *e;
	struct diag d;

	FUZZ_CHECK(more);
	memcpy(more, "not (", 5);
	memcpy(more + 5, text, n);
	memcpy(more + 5 + n, ")", 2);
	diag_clear(&d);
	if (expr_parse(more, &e, &d) == 0)
		FUZZ_CHECK(expr_eval(e, f) == negated(t));
	else
		FUZZ_CHECK(strstr(d.text, "levels"));
	expr_free(e);
	free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint64_t seed = fuzz_number(&in, 4) * 0x100000001ull;
	char *text = fuzz_text(in.p, in.left), said[EXPR_TEXT];
	struct facts f;
	struct expr *e;
	struct diag d;

	some_facts(&f, seed);
	diag_clear(&d);
	if (expr_parse(text, &e, &d) == 0) {
		enum expr_truth t = expr_eval(e, &f);
		size_t room = 8 + seed % (sizeof(said) - 8);

		FUZZ_CHECK(t != EXPR_UNKNOWN || expr_unknown(e, &f) < FACT_COUNT);
		FUZZ_CHECK(strlen(expr_explain(e, &f, seed & 1, said, room)) < room);
		fuzz_printable(said, strlen(said), "");
		check_not(text, &f, t);
	} else {
		fuzz_diag(&d);
		FUZZ_CHECK(!e && d.exit == HM_USAGE);
	}
	expr_free(e);
	free(text);
	return 0;
}
