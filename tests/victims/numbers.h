// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef VICTIM_NUMBERS_H
#define VICTIM_NUMBERS_H
/*
 * What the victim's own malloc says of itself, taken at one moment and told with the next report:
 *
 *     BITS FD ARENA USED FREE MAPPED BLOCKS TOP
 *
 * BITS is how wide the six numbers are: 64 with mallinfo2(), which came with 2.33; before it the
 * same as ints, modulo 2^32. They are mallinfo2's arena, uordblks, fordblks, hblkhd, hblks and
 * keepcost. FD is a file of memory that holds what malloc_info() has printed. (Nobody allocates
 * from numbers_take on, so that all of it stays true.)
 */
#include <malloc.h>
#include <sys/mman.h>

#include "victim.h"

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#define NUMBERS_BITS 64
#define mallinfo_all mallinfo2
typedef size_t numbers_field;
#else
#define NUMBERS_BITS 32
#define mallinfo_all mallinfo
typedef unsigned numbers_field;
#endif

static FILE *numbers_file;
static char numbers_buffer[1 << 20];

/* First of all: what a FILE needs itself is a part of the heap from then on. */
static inline void numbers_open(void)
{
	int fd = memfd_create("malloc_info", MFD_CLOEXEC);

	numbers_file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!numbers_file)
		wrong("no file for malloc_info: %s", strerror(errno));
	setvbuf(numbers_file, numbers_buffer, _IOFBF, sizeof(numbers_buffer));
}

/* Bytes in use now, modulo 2^32 before 2.33. */
static inline size_t numbers_in_use(void)
{
	return (numbers_field)mallinfo_all().uordblks;
}

static inline void numbers_take(void)
{
	__typeof__(mallinfo_all()) m;

	if (malloc_info(0, numbers_file) || fflush(numbers_file))
		wrong("malloc_info: %s", strerror(errno));
	m = mallinfo_all();
	snprintf(victim_says, sizeof(victim_says), "%d %d %zu %zu %zu %zu %zu %zu", NUMBERS_BITS,
		 fileno(numbers_file), (size_t)(numbers_field)m.arena,
		 (size_t)(numbers_field)m.uordblks, (size_t)(numbers_field)m.fordblks,
		 (size_t)(numbers_field)m.hblkhd, (size_t)(numbers_field)m.hblks,
		 (size_t)(numbers_field)m.keepcost);
}
#endif
