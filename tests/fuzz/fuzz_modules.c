// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * All that is known of a target's modules, from its maps, auxiliary vector and memory. Of the files
 * only the program's can be opened, which holds what is in memory. The input is the text of maps
 * (2 bytes of length before it), the auxiliary vector (1 byte), then memory.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../inject/anchors.h"
#include "../../inject/image.h"
#include "../../inject/mem.h"
#include "../../inject/modules.h"
#include "../../inject/tls.h"
#include "../../inject/unwind.h"
#include "fuzz.h"

const char fuzz_name[] = "modules";

static void use(const struct modules *m)
{
	struct tls_layout layout;
	struct anchors anchors;
	struct code_map *code;
	struct symbol sym;
	struct diag d;

	for (size_t i = 0; i < m->n; i++) {
		FUZZ_CHECK(m->v[i].start < m->v[i].end && m->v[i].path);
		FUZZ_CHECK(m->v[i].ro_start <= m->v[i].ro_end);
	}
	FUZZ_CHECK(m->base <= m->n);
	(void)!modules_symbol(m, "malloc", &sym);
	modules_musl(m);
	tls_layout_read(FUZZ_PID, m, &layout);
	FUZZ_CHECK(layout.block_len <= TLS_BLOCK_MAX);
	diag_clear(&d);
	if (anchors_find(m, &anchors, &d))
		fuzz_diag(&d);
	if (code_map_build(m, &code) == 0)
		code_map_free(code);
}

/* The copy of a mapped object, as it is made where its file cannot be opened for other reasons. */
static void copies(const struct maps *maps)
{
	uint64_t budget = 1 << 20;

	for (size_t i = 0; i < maps->n && i < 4; i++) {
		unsigned char id[64];
		struct elf_file *e;
		struct elf_sym s;
		struct image im;
		int fd;

		if (image_read(FUZZ_PID, maps->v[i].start, &im))
			continue;
		FUZZ_CHECK(im.start < im.end && im.ro_start <= im.ro_end);
		FUZZ_CHECK(image_build_id(&im, id, sizeof(id)) <= sizeof(id));
		if (image_to_file(&im, &budget, &fd) == 0 && elf_file_open(fd, &e) == 0) {
			(void)!elf_file_lookup(e, "malloc", &s);
			elf_file_close(e);
		}
		image_free(&im);
	}
}

static void make_exe(const struct maps *maps)
{
	static char file[32768];
	ssize_t n = maps->n ? mem_read_some(FUZZ_PID, maps->v[0].start, file, sizeof(file)) : 0;

	fuzz_proc_file("exe", file, n > 0 ? (size_t)n : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct target t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd(), .comm = "x" };
	struct modules mods;
	struct maps maps;
	struct diag d;
	size_t len;
	const uint8_t *p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 2), &len);
	int rc = maps_parse((const char *)p, len, &maps);

	p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 1), &len);
	if (rc)
		return 0;
	fuzz_proc_file("auxv", p, len);
	fuzz_memory(&in);
	make_exe(&maps);
	diag_clear(&d);
	if (modules_load(&t, &maps, &mods, &d)) {
		fuzz_diag(&d);
	} else {
		use(&mods);
		modules_free(&mods);
	}
	copies(&maps);
	maps_free(&maps);
	return 0;
}
