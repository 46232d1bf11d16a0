// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_HELP_H
#define HM_HELP_H
#include <stdio.h>

#include "command.h"

/* All made from the tables of commands and options. */
void help_program(FILE *out);  /* one screen: -h */
void help_commands(FILE *out); /* `help` */
/* `help COMMAND`; shell: the examples as they are typed in heapmedic's own. */
void help_command(FILE *out, const struct command *row, bool shell);
#endif
