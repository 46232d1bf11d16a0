// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DWARF_LINES_H
#define HM_DWARF_LINES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * Lines and inlined functions from debug information, by libdw. Debug information that is damaged
 * on purpose may make libdw crash, loop or take any amount of memory, and the files are mapped, so
 * that one that is cut short while it is read ends the process by SIGBUS: this is called in a
 * process that may end (symbol_lines.h), and nowhere else.
 */
struct dwarf_frame {
	const char *name; /* NULL: none */
	const char *file; /* NULL: not known */
	const char *dir;  /* that a file without a leading "/" is below; NULL: not known */
	unsigned line;	  /* 0: not known */
	bool inlined;	  /* into the next frame */
	bool unscoped;	  /* name is not the symbol's: that one says more (a C++ name without its
			     class) */
};

/* What is known of at[i], innermost first. The strings are good only inside. Not zero: stop. */
typedef int (*dwarf_take_fn)(size_t i, const struct dwarf_frame *v, size_t n, void *arg);

/*
 * at: n addresses as in the file, ascending. Calls take once for each that debug information
 * covers, in any order. fd is the file with the debug information, alt_fd the one that it shares
 * with others
 * (.gnu_debugaltlink), or -1; both stay open. Memory: the lines of the units that have addresses,
 * no more than 100 MiB of them at a time (one unit may have more), and 40 bytes for each address.
 * Without places there are no files and lines, only functions; that takes half of the time.
 * -EBADMSG if there is no debug information that can be read, -ENOMEM, or what take has returned.
 */
HM_MUST_CHECK int dwarf_lines_find(int fd, int alt_fd, const uint64_t *at, size_t n, bool places,
				   dwarf_take_fn take, void *arg);
#endif
