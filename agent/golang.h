// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GOLANG_H
#define HM_GOLANG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/modules.h"
#include "../inject/reader.h"

/* The module was made by Go's linker: it has the section that `go version` reads (.go.buildinfo,
 * also in stripped files). */
bool golang_module(const struct module *mod);

/*
 * The runtime's persistentalloc takes its memory in chunks of this size and keeps them in a list
 * (runtime.persistentChunks: the first word of each is the next one; malloc.go). Fills up to max
 * addresses; returns how many. 0 where the program has no symbols.
 */
#define GOLANG_CHUNK ((uint64_t)256 << 10)
size_t golang_chunks(const struct reader *r, const struct module *mod, uint64_t *out, size_t max);
#endif
