// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LOOK_OTHERS_H
#define HM_LOOK_OTHERS_H
#include "look.h"

/* The parts of look_take for tcmalloc and mimalloc: asked by calls, if that may be. 0, or with d
 * where the target suffers from it or is gone. */
HM_MUST_CHECK int look_others(struct process *p, bool may_call, struct look *l, struct diag *d);
/* A call that cannot be made is no error of a look, unless the target suffers or is gone. */
bool look_is_refusal(const struct diag *d);
#endif
