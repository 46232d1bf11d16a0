// SPDX-License-Identifier: GPL-3.0-or-later
#include "golang.h"

bool golang_module(const struct module *mod)
{
	uint64_t addr, size;

	return mod->elf && elf_file_section(mod->elf, ".go.buildinfo", &addr, &size) == 0;
}

size_t golang_chunks(const struct reader *r, const struct module *mod, uint64_t *out, size_t max)
{
	struct symbol head;
	uint64_t at;
	size_t n = 0;

	if (module_symbol(mod, "runtime.persistentChunks", &head))
		return 0;
	at = head.addr;
	/* each is a mapping of its own: page aligned, and written before it is put into the list */
	while (n < max && r->read(r->ctx, at, &at, sizeof(at)) == 0 && at && at % 4096 == 0)
		out[n++] = at;
	return n;
}
