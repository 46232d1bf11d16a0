// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CALL_TEXT_H
#define HM_CALL_TEXT_H
#include <stddef.h>

/* Names of functions, as a profile may have them. Pure. */

/* A copy of at most size - 1 bytes: what is not printable ASCII becomes \xNN. */
void call_text_clean(const char *text, char *buf, size_t size);
/* Takes the parameters off the end of a demangled C++ name, in place: "f(int) const" becomes "f".
 * Names without stay what they are. */
void call_text_brief(char *name);
/* The last "--" between from and end that parts two names, NULL without one. That of operator-- is
 * part of a name. */
const char *call_text_part(const char *from, const char *end);
#endif
