// SPDX-License-Identifier: GPL-3.0-or-later
#include "dwarf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>

#include "dwarf_unit.h"

/* libdw keeps what it has decoded (some 50 bytes a line) until it is ended: so many, then anew. */
#define LINES_KEPT ((size_t)2 << 20)

/* An address, and the unit that has it. */
struct owned {
	uint64_t at;
	uint64_t span; /* of the unit's range; 0: no unit has it */
	Dwarf_Off unit;
	uint32_t i; /* the caller's number of it */
};

struct file {
	Elf *elf;
	Dwarf *dwarf;
};

static int file_open(int fd, struct file *f)
{
	*f = (struct file){ 0 };
	if (fd < 0)
		return -EBADF;
	f->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	f->dwarf = f->elf ? dwarf_begin_elf(f->elf, DWARF_C_READ, NULL) : NULL;
	return f->dwarf ? 0 : -EBADMSG;
}

static void file_close(struct file *f)
{
	if (f->dwarf)
		dwarf_end(f->dwarf);
	if (f->elf)
		elf_end(f->elf);
	*f = (struct file){ 0 };
}

/* Both, or neither. */
static int files_open(int fd, int alt_fd, struct file *main, struct file *alt)
{
	int err = file_open(fd, main);

	*alt = (struct file){ 0 };
	if (!err && !file_open(alt_fd, alt))
		dwarf_setalt(main->dwarf, alt->dwarf);
	if (err)
		file_close(main);
	return err;
}

static void files_close(struct file *main, struct file *alt)
{
	file_close(main);
	file_close(alt);
}

static size_t lower(const struct owned *v, size_t n, uint64_t at)
{
	size_t lo = 0, hi = n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (v[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Of several units that claim an address the one with the smallest range has it. What a linker has
 * left out keeps its size and begins at 0.
 */
static void claim(struct owned *v, size_t n, Dwarf_Die *die)
{
	Dwarf_Off unit = dwarf_dieoffset(die);
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	size_t i;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (!lo || hi <= lo)
			continue;
		for (i = lower(v, n, lo); i < n && v[i].at < hi; i++) {
			if (v[i].span && v[i].span <= hi - lo)
				continue;
			v[i].span = hi - lo;
			v[i].unit = unit;
		}
	}
}

/* -EBADMSG where the units end in the middle of something; those before it count. */
static int claim_all(Dwarf *dwarf, struct owned *v, size_t n)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;
	int rc;

	while (!(rc = dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL)))
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			claim(v, n, &die);
	return rc < 0 ? -EBADMSG : 0;
}

static int by_unit(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;

	if (!x->span != !y->span)
		return !x->span - !y->span; /* those without a unit are last */
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The n addresses at v are those of one unit. */
static int one_unit(Dwarf *dwarf, const struct owned *v, size_t n, size_t *lines,
		    dwarf_take_fn take, void *arg)
{
	struct dwarf_at *at = malloc(n * sizeof(*at));
	Dwarf_Die die;
	size_t i;
	int err = 0;

	if (!at)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		at[i] = (struct dwarf_at){ .at = v[i].at, .i = v[i].i };
	if (dwarf_offdie(dwarf, v->unit, &die))
		err = dwarf_unit_find(&die, at, n, lines, take, arg);
	free(at);
	return err;
}

static int all_units(int fd, int alt_fd, struct file *main, struct file *alt, struct owned *v,
		     size_t n, bool places, dwarf_take_fn take, void *arg)
{
	size_t from, to, lines = 0;
	int err = 0;

	for (from = 0; !err && from < n && v[from].span; from = to) {
		for (to = from; to < n && v[to].span && v[to].unit == v[from].unit;)
			to++;
		if (lines > LINES_KEPT) {
			files_close(main, alt);
			err = files_open(fd, alt_fd, main, alt);
			lines = 0;
		}
		if (!err)
			err = one_unit(main->dwarf, v + from, to - from, places ? &lines : NULL,
				       take, arg);
	}
	return err;
}

int dwarf_lines_find(int fd, int alt_fd, const uint64_t *at, size_t n, bool places,
		     dwarf_take_fn take, void *arg)
{
	struct owned *v = calloc(n + 1, sizeof(*v));
	struct file main = { 0 }, alt = { 0 };
	int err, damaged;
	size_t i;

	if (!v)
		return -ENOMEM;
	err = elf_version(EV_CURRENT) == EV_NONE ? -EBADMSG : files_open(fd, alt_fd, &main, &alt);
	if (!err) {
		for (i = 0; i < n; i++)
			v[i] = (struct owned){ .at = at[i], .i = (uint32_t)i };
		damaged = claim_all(main.dwarf, v, n);
		qsort(v, n, sizeof(*v), by_unit);
		err = all_units(fd, alt_fd, &main, &alt, v, n, places, take, arg);
		err = err ? err : damaged;
		files_close(&main, &alt);
	}
	free(v);
	return err;
}
