// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The FILE that is built for a target's malloc_info, tried on this process's own glibc: it is the
 * same library, so the bytes must work here as they do there.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "../../agent/glibc_file.h"

extern unsigned char _IO_2_1_stderr_[]; /* glibc's own object behind stderr */

struct ours {
	_Alignas(16) unsigned char file[GLIBC_FILE_SIZE];
	_Alignas(16) unsigned char lock[GLIBC_LOCK_SIZE];
	struct glibc_file_args args;
};

static FILE *build(struct ours *o, char *buf, size_t len, int fd)
{
	memset(o, 0, sizeof(*o));
	memcpy(o->file, _IO_2_1_stderr_, GLIBC_FILE_SIZE);
	o->args = (struct glibc_file_args){
		.lock = (uintptr_t)o->lock, .buf = (uintptr_t)buf, .len = len, .fd = fd
	};
	cr_assert_eq(glibc_file_build(o->file, &o->args), 0);
	return (FILE *)(void *)o->file;
}

static char ours_buf[1 << 20], their_buf[1 << 20], their_text[1 << 20];

/* Some history, so that there is something to print. */
static void use_heap(void)
{
	void *v[200];

	for (int i = 0; i < 200; i++)
		cr_assert((v[i] = malloc((size_t)i * 40 + 1)));
	for (int i = 0; i < 200; i += 2)
		free(v[i]);
	for (int i = 1; i < 200; i += 2) /* and these too, into other lists */
		free(v[i]);
}

static size_t read_back(int fd, char *to, size_t max)
{
	ssize_t n = pread(fd, to, max - 1, 0);

	cr_assert(n >= 0);
	to[n] = '\0';
	return (size_t)n;
}

Test(glibc_file, malloc_info_prints_the_same)
{
	int fd = memfd_create("theirs", 0);
	FILE *theirs = fdopen(fd, "w");
	struct ours o;
	FILE *f;
	bool cut = true;
	size_t used, n;

	cr_assert(theirs && !setvbuf(theirs, their_buf, _IOFBF, sizeof(their_buf)));
	use_heap();
	f = build(&o, ours_buf, sizeof(ours_buf) - 64, -1);
	/* Neither call allocates, so the heap is the same for both. */
	cr_assert_eq(malloc_info(0, f), 0);
	cr_assert_eq(malloc_info(0, theirs), 0);
	cr_assert_eq(fflush(theirs), 0);
	n = read_back(fd, their_text, sizeof(their_text));
	used = glibc_file_used(o.file, &o.args, &cut);
	cr_expect(!cut);
	cr_assert_eq(used, n);
	cr_expect_eq(memcmp(ours_buf, their_text, n), 0);
	cr_expect(n > 200 && strstr(their_text, "</malloc>"));
	fclose(theirs);
}

/* The bytes beyond what it may use stay as they are, and its list of files does not get longer. */
Test(glibc_file, a_full_buffer_goes_to_the_descriptor)
{
	static char small[256 + 16];
	int fd = memfd_create("ours", 0);
	struct ours o;
	FILE *f = build(&o, small, 256, fd);
	bool cut = true;
	size_t used, n;

	memset(small + 256, 0x5a, 16);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(fprintf(f, "line %05d\n", i), 11);
	used = glibc_file_used(o.file, &o.args, &cut);
	n = read_back(fd, their_text, sizeof(their_text));
	cr_expect(!cut);
	cr_assert_eq(n + used, 5500);
	memcpy(their_text + n, small, used);
	for (int i = 0; i < 500; i++) {
		char want[16];

		snprintf(want, sizeof(want), "line %05d\n", i);
		cr_assert_eq(memcmp(their_text + i * 11, want, 11), 0, "line %d", i);
	}
	for (int i = 256; i < 272; i++)
		cr_expect_eq(small[i], 0x5a);
	cr_expect_eq(fflush(NULL), 0);
	cr_expect_eq(glibc_file_used(o.file, &o.args, &cut), used, "it is on the list of files");
	close(fd);
}

Test(glibc_file, without_a_descriptor_the_rest_is_lost_and_told)
{
	static char small[256];
	struct ours o;
	FILE *f = build(&o, small, 200, -1);
	bool cut = false;
	size_t used;

	for (int i = 0; i < 100; i++)
		(void)!fprintf(f, "line %05d\n", i);
	used = glibc_file_used(o.file, &o.args, &cut);
	cr_expect(cut);
	cr_expect_eq(used, 200);
	cr_expect_eq(memcmp(small, "line 00000\nline 00001\n", 22), 0);
}

/* Its lock is never taken: a lock word that says "held by somebody" does not stop the call. */
Test(glibc_file, takes_no_lock, .timeout = 20)
{
	static char small[256];
	struct ours o;
	FILE *f = build(&o, small, 200, -1);

	o.lock[0] = 1;
	o.lock[4] = 1;
	o.lock[8] = 1;
	cr_assert(fputs("through\n", f) >= 0);
	cr_expect_eq(memcmp(small, "through\n", 8), 0);
}

Test(glibc_file, refuses_what_is_no_file)
{
	unsigned char file[GLIBC_FILE_SIZE] = { 0 };
	struct glibc_file_args a = { .buf = 4096, .len = 100, .fd = -1 };

	cr_expect_eq(glibc_file_build(file, &a), -EBADMSG);
	memcpy(file, _IO_2_1_stderr_, sizeof(file));
	memset(file + 216, 0, 8); /* no functions */
	cr_expect_eq(glibc_file_build(file, &a), -EBADMSG);
}

/* fwide(3) on stderr gives it functions that count in wide characters: ours is for bytes. */
Test(glibc_file, is_for_bytes_where_stderr_is_not)
{
	static char small[256];
	unsigned char file[GLIBC_FILE_SIZE];
	struct ours o = { 0 };

	cr_assert_gt(fwide(stderr, 1), 0);
	o.args = (struct glibc_file_args){
		.lock = (uintptr_t)o.lock, .buf = (uintptr_t)small, .len = 200, .fd = -1
	};
	memcpy(o.file, _IO_2_1_stderr_, GLIBC_FILE_SIZE);
	memcpy(file, o.file, sizeof(file));
	cr_assert_eq(glibc_file_build(file, &o.args), -EBADMSG);
	o.args.vtable = (uintptr_t)dlsym(RTLD_DEFAULT, "_IO_file_jumps");
	cr_assert(o.args.vtable);
	cr_assert_eq(glibc_file_build(o.file, &o.args), 0);
	cr_assert_eq(fprintf((FILE *)(void *)o.file, "%d bytes\n", 8), 8);
	cr_assert_str_eq(small, "8 bytes\n");
}

/* A write pointer outside of the buffer is never believed. */
Test(glibc_file, does_not_believe_a_wild_pointer)
{
	static char small[64];
	struct ours o;
	bool cut = false;
	uint64_t wild[] = { 0, (uintptr_t)small - 1, (uintptr_t)small + 65, UINT64_MAX };

	build(&o, small, sizeof(small), -1);
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		memcpy(o.file + GLIBC_FILE_WRITE, &wild[i], 8);
		cr_expect_eq(glibc_file_used(o.file, &o.args, &cut), 0);
		cr_expect(cut);
	}
}

Test(glibc_file, inspects_streams)
{
	struct glibc_file_state s;
	FILE *f = fdopen(memfd_create("f", 0), "w");

	glibc_file_inspect(_IO_2_1_stderr_, &s);
	cr_expect(s.valid && s.unbuffered);
	cr_expect_eq(s.fd, 2);
	cr_expect(s.lock && s.vtable);
	cr_assert(f);
	cr_assert(fputs("x", f) >= 0);
	glibc_file_inspect((const unsigned char *)f, &s);
	cr_expect(s.valid && !s.unbuffered && s.buffered_bytes);
	cr_expect_eq(s.fd, fileno(f));
	cr_expect(s.mode < 0);
	fclose(f);
}
