// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A fuzz target without libFuzzer, as a test: each seed, and each fault that was once found (they
 * lie beside the seeds), then beginnings of each, since that is how damaged input comes most often.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define CUTS 32

static char *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *buf;
	long size;

	cr_assert(f, "%s: %s", path, strerror(errno));
	cr_assert(fseek(f, 0, SEEK_END) == 0);
	size = ftell(f);
	cr_assert(size >= 0);
	rewind(f);
	buf = malloc((size_t)size + 1);
	cr_assert(buf && fread(buf, 1, (size_t)size, f) == (size_t)size);
	fclose(f);
	*len = (size_t)size;
	return buf;
}

/* A copy of exactly that length, so that a read behind its end is seen. */
static void feed(const char *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	cr_assert(copy);
	memcpy(copy, data, len);
	cr_assert_eq(LLVMFuzzerTestOneInput(copy, len), 0);
	free(copy);
}

static unsigned feed_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		char path[512];
		char *data;
		size_t len;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		fprintf(stderr, "%s\n", path);
		data = read_file(path, &len);
		feed(data, len);
		for (size_t i = 0; i < CUTS; i++)
			feed(data, len * i / CUTS);
		free(data);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

Test(fuzz, seeds, .timeout = 600)
{
	const char *built = getenv("FUZZ_SEEDS");
	char dir[256];
	unsigned n;

	snprintf(dir, sizeof(dir), "tests/fuzz/corpus/%s", fuzz_name);
	n = feed_dir(dir);
	snprintf(dir, sizeof(dir), "%s/%s", built ? built : "build/fuzz-seeds", fuzz_name);
	n += feed_dir(dir);
	cr_assert(n > 0, "no seeds for %s, neither in tests/fuzz/corpus nor in %s", fuzz_name, dir);
}
