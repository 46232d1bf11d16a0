// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef TORTURE_H
#define TORTURE_H
#include <stdbool.h>

/*
 * The same tests serve twice: `make torture` runs them at full length, some twenty minutes on two
 * CPUs, and prints their figures; `make test` runs them briefly, in about a minute.
 */
bool torture_full(void);
/* How often to do something: full under `make torture`, brief under `make test`. */
unsigned torture_rounds(unsigned full, unsigned brief);
/*
 * One line of figures, said when a test has found no harm: what was done how often, and what was
 * measured. It goes to stderr, which the runner shows.
 */
void torture_figure(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#endif
