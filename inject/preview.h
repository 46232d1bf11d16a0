// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PREVIEW_H
#define HM_PREVIEW_H
#include "maps.h"
#include "modules.h"
#include "threads.h"

/*
 * What a session would find when it looks at the ranked threads, with nobody held: a thread that
 * sleeps in the allocator, say, is not usable though its system call would allow it. Sorts them
 * anew. A running thread stays as it is, and so does one whose memory cannot be read. Errors:
 * -ENOMEM and those of reading the modules.
 */
HM_MUST_CHECK int preview_threads(const struct target *t, const struct maps *maps,
				  const struct modules *mods, struct threads *list);
#endif
