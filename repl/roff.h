// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ROFF_H
#define HM_ROFF_H
#include <stdio.h>

/*
 * Manual pages in the man(7) macros. Text is given as it stands elsewhere: what roff would take for
 * its own is escaped, so that a reader can copy each option and example from the page.
 */

/* The head of a page: NAME(SECTION). date is "2026-01-31". */
void roff_title(FILE *out, const char *name, const char *section, const char *date);
void roff_section(FILE *out, const char *title);
void roff_subsection(FILE *out, const char *title);
/* In a line, without its end. `text` in backquotes comes out bold, without them. */
void roff_inline(FILE *out, const char *text);
/* The same, bold or as a macro's argument (in quotes). */
void roff_bold(FILE *out, const char *text);
/* Paragraphs with empty lines between them; one whose lines all begin with two blanks stays as it
 * is. */
void roff_text(FILE *out, const char *text);
/* The same right behind the head of a section. */
void roff_lead(FILE *out, const char *text);
/* Lines as they are, indented. */
void roff_example(FILE *out, const char *text);
/* A term of a list, bold, with what is meant by it below; meta (may be NULL) is what stands behind
 * it. */
void roff_term(FILE *out, const char *term, const char *meta, const char *meaning);
#endif
