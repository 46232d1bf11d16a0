// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CONFIRM_H
#define HM_CONFIRM_H
#include "context.h"

/* Asks the person at the terminal [y/N]. 0: yes; exit 4 "not-confirmed" for anything else. */
HM_MUST_CHECK int confirm_ask(struct context *c, const char *command, struct diag *d);
#endif
