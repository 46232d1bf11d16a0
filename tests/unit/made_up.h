// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef TEST_MADE_UP_H
#define TEST_MADE_UP_H
#include "../../agent/snapshot.h"

/*
 * A snapshot in which every member that the tables know is set, to a value of its own, with lists
 * of MADE_UP_ROWS; what must fit together does. Ended by made_up_free.
 */
#define MADE_UP_ROWS 3
void made_up(struct snapshot *s);
void made_up_free(struct snapshot *s);
/* Fails the test at the first member of the tables in which the two differ. */
void made_up_same(const struct snapshot *a, const struct snapshot *b);
#endif
