// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_EXITS_H
#define HM_EXITS_H
#include "command.h"

/* What an exit code means, in a few words; NULL: there is no such code. For help and the manual. */
const char *exit_meaning(enum hm_exit code);
/* The same of this command: what its own row says, else the meaning of all; NULL where it cannot
 * end so. */
const char *exit_of_command(const struct command *row, enum hm_exit code);
#endif
