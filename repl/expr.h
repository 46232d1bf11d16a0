// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_EXPR_H
#define HM_EXPR_H
#include <stdbool.h>
#include <stddef.h>

#include "../agent/facts.h"
#include "../inject/diag.h"

/*
 * Conditions over facts, for runbooks and guards:
 *
 *   rss > 1.5G and (glibc.trimmable > 20% of rss or jemalloc.fragmentation > 0.35)
 *
 * A comparison (> >= < <= = !=) has a fact on one side at least; the other is a fact, a size, a
 * time, a number, a share of a fact (20% of rss, 300% of go.heap_resident), true or false, or a
 * version (part by part: 2.9 is older than
 * 2.34), by the kind of the fact. A fact that is true
 * or false may stand alone. `not` binds closest, then `and`, then `or`.
 *
 * A fact that is not known of this process makes its comparison neither true nor false: what hangs
 * on it is unknown (`unknown or true` is true, `not unknown` is unknown). Pure.
 */
struct expr;

enum expr_truth { EXPR_FALSE, EXPR_TRUE, EXPR_UNKNOWN };

/*
 * Exit 2 for what is no condition: "syntax", "unknown-fact" with the nearest names, "bad-value" for
 * a value that is not of the fact's kind. At most EXPR_COMPARISONS comparisons, parentheses
 * EXPR_DEPTH deep. The caller frees *out with expr_free.
 */
#define EXPR_COMPARISONS 64
#define EXPR_DEPTH	 32
HM_MUST_CHECK int expr_parse(const char *text, struct expr **out, struct diag *d);
void expr_free(struct expr *e); /* may be NULL */

enum expr_truth expr_eval(const struct expr *e, const struct facts *f);
/* The facts that it names: does it name id? */
bool expr_names(const struct expr *e, enum fact_id id);
/* Of those, the first that is not known; FACT_COUNT if all are. */
enum fact_id expr_unknown(const struct expr *e, const struct facts *f);
/*
 * What decided, in the order of the text: "rss 3.9 GiB > 1.5 GiB, glibc.trimmable 12.0 MiB <= 798.7
 * MiB (20% of rss)". Each comparison is written as it is found to be. raw: bytes as numbers. Cut
 * with "..." where size does not do. buf is returned.
 */
const char *expr_explain(const struct expr *e, const struct facts *f, bool raw, char *buf,
			 size_t size);
/* The same of those comparisons alone whose facts are known: they have decided. */
const char *expr_explain_known(const struct expr *e, const struct facts *f, bool raw, char *buf,
			       size_t size);
#define EXPR_TEXT 512
#endif
