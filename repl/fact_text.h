// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_FACT_TEXT_H
#define HM_FACT_TEXT_H
#include "../agent/look.h"
#include "command.h"

/* A known fact as people read it; raw: bytes and seconds as plain numbers. buf is returned. */
const char *fact_text(const struct facts *f, enum fact_id id, bool raw, char *buf, size_t size);
/* Why a fact is not known, as far as the look tells. */
const char *fact_missing(const struct look *l, enum fact_id id);
/* Exit 2 with the names that are near, returns -EINVAL. */
int fact_unknown(const char *name, struct diag *d);
/* {"NAME": VALUE}, all facts in the table's order: what is not known is null. */
json_t *facts_json(struct reply *r, const struct facts *f);
/* {"NAME": ORIGIN} of those that are known. */
json_t *fact_origins_json(struct reply *r, const struct facts *f);
/* What a look could not see, or only about: each a warning. asking: answers of jemalloc are wanted.
 */
void look_warn(struct context *c, struct reply *r, const struct look *l, bool asking);
#endif
