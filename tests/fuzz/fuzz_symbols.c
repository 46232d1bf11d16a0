// SPDX-License-Identifier: GPL-3.0-or-later
/* Addresses looked up in a file that says what it likes: symbols, debug files, debug information.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../agent/sandbox.h"
#include "../../agent/symbols.h"
#include "../../inject/elf.h"
#include "fuzz.h"

const char fuzz_name[] = "symbols";

#define MAPS   8
#define PCS    64
#define FRAMES 16

struct input {
	const uint8_t *data;
	size_t size;
};

/* Every file that is asked for is this one. */
static int open_input(void *arg, const struct symbol_map *m)
{
	const struct input *in = arg;

	FUZZ_CHECK(m->path && m->path[0] && !strstr(m->path, "/../"));
	return fuzz_file(in->data, in->size);
}

static size_t maps_of(const struct elf_file *e, struct symbol_map *map)
{
	const struct elf_segment *seg;
	size_t n = elf_file_segments(e, &seg), k = 0;

	for (size_t i = 0; i < n && k < MAPS; i++) {
		if (seg[i].type != PT_LOAD)
			continue;
		map[k] = (struct symbol_map){ .start = seg[i].vaddr,
					      .end = seg[i].vaddr + seg[i].memsz,
					      .offset = seg[i].offset,
					      .path = k % 2 ? "/x/prog" : "/prog" };
		k++;
	}
	return k;
}

static size_t pcs_of(const struct symbol_map *map, size_t n, uint64_t *pc)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		for (uint64_t j = 0; j < PCS / MAPS; j++)
			pc[k++] = map[i].start + j * j * 37;
	return k;
}

static void look_up(struct input *in, const struct symbol_map *map, size_t n, const uint64_t *pc,
		    size_t count)
{
	struct symbol_frame f[FRAMES];
	struct symbols *s;
	size_t sum = 0;

	FUZZ_CHECK(!symbols_new(map, n, open_input, in, &s, NULL));
	(void)!symbols_prepare(s, pc, count, NULL);
	for (size_t i = 0; i < count; i++) {
		size_t k = symbols_find(s, pc[i], f, FRAMES);

		FUZZ_CHECK(k <= FRAMES);
		while (k--)
			sum += (f[k].name ? strlen(f[k].name) : 0) +
			       (f[k].file ? strlen(f[k].file) : 0);
	}
	FUZZ_CHECK(sum < (size_t)1 << 30);
	for (size_t i = 0; i < n; i++) {
		(void)symbols_build_id(s, i);
		FUZZ_CHECK(symbols_state_text(symbols_state(s, i, NULL))[0]);
	}
	symbols_free(s);
}

/*
 * In place of agent/sandbox.c: what is done in a process of its own is done here, so that it is
 * seen and quick.
 */
static struct {
	char *text;
	size_t len, cap, at;
	int err;
} said;

void sandbox_write(struct sandbox_out *out, const void *p, size_t len)
{
	(void)out;
	if (len > said.cap - said.len) {
		said.cap = 2 * (said.cap + len);
		said.text = realloc(said.text, said.cap);
		FUZZ_CHECK(said.text != NULL);
	}
	if (len)
		memcpy(said.text + said.len, p, len);
	said.len += len;
}

int sandbox_start(int (*fn)(struct sandbox_out *out, void *arg), void *arg, const int *keep,
		  size_t n, struct sandbox *s)
{
	FUZZ_CHECK(n && fcntl(keep[0], F_GETFD) >= 0);
	*s = (struct sandbox){ 0 };
	said.len = said.at = 0;
	said.err = fn(NULL, arg);
	return 0;
}

int sandbox_read(struct sandbox *s, void *buf, size_t len)
{
	(void)s;
	if (said.len - said.at < len)
		return said.len == said.at ? -ENODATA : -EBADMSG;
	memcpy(buf, said.text + said.at, len);
	said.at += len;
	return 0;
}

bool sandbox_end(struct sandbox *s)
{
	(void)s;
	return !said.err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct symbol_map map[MAPS];
	uint64_t pc[PCS];
	struct elf_file *e;
	size_t n;

	if (elf_file_open(fuzz_file(data, size), &e))
		return 0;
	n = maps_of(e, map);
	elf_file_close(e);
	look_up(&in, map, n, pc, pcs_of(map, n, pc));
	return 0;
}
