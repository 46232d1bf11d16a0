// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../agent/outfile.h"

#define SIZE  ((size_t)4 << 20)
#define KILLS 40

static char dir[64], path[96];

static bool begins(const unsigned char *head, size_t n)
{
	return n >= 4 && memcmp(head, "ours", 4) == 0;
}

static const struct outfile_kind kind = { "thing", begins, false };

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/hm-outfile-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out", dir);
}

/* Removes what is there; how many files it was, and how many of them had a name for a moment only.
 */
static unsigned clear_dir(unsigned *temporary)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	cr_assert_not_null(d);
	*temporary = 0;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n++;
		*temporary += strncmp(e->d_name, ".heapmedic-", 11) == 0;
		cr_assert_eq(unlinkat(dirfd(d), e->d_name, 0), 0);
	}
	closedir(d);
	return n;
}

static void remove_dir(void)
{
	unsigned temporary;

	clear_dir(&temporary);
	cr_assert_eq(rmdir(dir), 0);
}

static char *content(void)
{
	char *bytes = malloc(SIZE);

	cr_assert_not_null(bytes);
	memset(bytes, 'x', SIZE);
	memcpy(bytes, "ours", 4);
	return bytes;
}

/* As far as it came: whole or without a name. */
static void killed_while_saving(const char *bytes, useconds_t delay)
{
	struct diag d;
	struct stat st;
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		unsigned temporary;

		for (;;) {
			if (outfile_save(path, bytes, SIZE, &kind, false, &d))
				_exit(1);
			clear_dir(&temporary);
		}
	}
	usleep(delay);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status), "it could not save: %d", status);
	if (lstat(path, &st) == 0)
		cr_assert_eq((size_t)st.st_size, SIZE);
}

Test(outfile, nothing_stays_of_one_that_is_killed)
{
	char *bytes = content();
	int fd;

	make_dir();
	fd = open(dir, O_TMPFILE | O_WRONLY, 0600);
	if (fd < 0) {
		int err = errno;

		remove_dir();
		cr_skip_test("the file system of /tmp has no O_TMPFILE: %s", strerror(err));
	}
	close(fd);
	for (unsigned i = 0; i < KILLS; i++) {
		unsigned temporary;

		killed_while_saving(bytes, 500 * i);
		cr_assert_leq(clear_dir(&temporary), 1);
		cr_assert_eq(temporary, 0, "after %u us", 500 * i);
	}
	remove_dir();
	free(bytes);
}

Test(outfile, the_place_is_looked_at_without_a_trace)
{
	unsigned temporary;
	struct diag d;
	FILE *f;

	make_dir();
	cr_assert_eq(outfile_check(path, &kind, false, &d), 0);
	cr_assert_eq(clear_dir(&temporary), 0);
	f = fopen(path, "w");
	cr_assert(f && fputs("somebody's", f) >= 0 && fclose(f) == 0);
	diag_clear(&d);
	cr_assert_eq(outfile_check(path, &kind, false, &d), -EEXIST);
	cr_assert(strstr(d.text, "is no thing"), "%s", d.text);
	cr_assert_eq(outfile_check(path, &kind, true, &d), 0);
	cr_assert_eq(outfile_save(path, "ours", 4, &kind, true, &d), 0);
	/* what is ours may be replaced */
	cr_assert_eq(outfile_save(path, "ours too", 8, &kind, false, &d), 0);
	cr_assert_eq(clear_dir(&temporary), 1);
	cr_assert_eq(temporary, 0);
	remove_dir();
}

/* Whoever writes - wants stdout, and no file of that name. */
Test(outfile, stdout_is_no_file)
{
	struct diag d;

	diag_clear(&d);
	cr_assert_eq(outfile_check("-", &kind, true, &d), -EINVAL);
	cr_assert_eq(d.exit, HM_USAGE);
	cr_assert_eq(outfile_save("-", "ours", 4, &kind, true, &d), -EINVAL);
	cr_assert_eq(access("-", F_OK), -1);
}
