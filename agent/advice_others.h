// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ADVICE_OTHERS_H
#define HM_ADVICE_OTHERS_H
#include "advice.h"

/* Parts of advice_make: tcmalloc, mimalloc and musl. Pure. */
void advice_others_now(const struct advice_case *c, struct advices *out);
void advice_others_restart(const struct advice_case *c, struct advices *out);
#endif
