// SPDX-License-Identifier: GPL-3.0-or-later
// flags: -static -e main -O1 -g -gdwarf-4 -gz
/* The same of an older version, compressed, with functions inside of functions. */
#include "lines.c"
