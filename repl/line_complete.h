// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LINE_COMPLETE_H
#define HM_LINE_COMPLETE_H
#include "context.h"

/* Has readline ask complete() what the word at the cursor may become, with what is known of c's
 * process. c must live as long as lines are read. */
void line_complete_setup(struct context *c);
#endif
