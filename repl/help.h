// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_HELP_H
#define HM_HELP_H
#include <stdio.h>

#include "command.h"

/* All made from the tables of commands and options. */
void help_program(FILE *out);				 /* one screen: -h */
void help_commands(FILE *out);				 /* `help` */
void help_command(FILE *out, const struct command *row); /* `help COMMAND` */
#endif
