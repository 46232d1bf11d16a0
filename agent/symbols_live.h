// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOLS_LIVE_H
#define HM_SYMBOLS_LIVE_H
#include "../inject/maps.h"
#include "../inject/target.h"
#include "symbols.h"

/*
 * Files of mappings, for symbols_new with a struct symbols_live as arg: the file that is mapped
 * there now (objfile_open; -ESTALE if it is another one, or if the mapping is not there any more),
 * a copy of the mapped object where its file is gone (exported functions only) and of the vdso.
 * Debug files are looked for below the process's root, then on this host.
 */
struct symbols_live {
	const struct target *t;
	const struct maps *maps;
	uint64_t budget; /* bytes of objects that may still be copied; symbols_live_begin sets it */
};
struct symbols_live symbols_live_begin(const struct target *t, const struct maps *maps);
HM_MUST_CHECK int symbols_live_open(void *live, const struct symbol_map *m);
/* The same without a process: the file of that path on this host. arg is not used. That it is still
 * the same file is known only where the map has a build id; -ESTALE where it was deleted. */
HM_MUST_CHECK int symbols_path_open(void *arg, const struct symbol_map *m);
#endif
