// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * fakectl KIND: has functions by the names of a jemalloc (prefix je_) that answer what no jemalloc
 * would, or hardly ever: absurd numbers, wrong sizes, codes that are none. Its own malloc is
 * glibc's. KIND is the code that every name but a few is answered with, or one of:
 *   many     4294967295 arenas, each of them initialised
 *   garbage  every number has all bits set, every string lies at address 1
 *   sizes    four bytes, whatever the type
 *   strings  strings without an end, of control characters
 *   path     mallctlnametomib changes the length
 *   slow     opt.narenas takes two and a half seconds
 *   old      5.2.1 with two arenas, of which the second is not initialised
 */
#include <pthread.h>
#include <stdbool.h>

#include "victim.h"

static const char *kind;
static int code;
static char endless[4096], version[64];

/* What all jemallocs have in their files. The version is put together later: else it would be read
 * there, and never asked for. */
const char *const je_strings[] = { "<jemalloc>: ", "JE_MALLOC_CONF" };

struct answer {
	const void *bytes;
	size_t size;
};

int je_mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len);
int je_mallctlnametomib(const char *name, size_t *mib, size_t *n);
int je_mallctlbymib(const size_t *mib, size_t n, void *old, size_t *old_len, void *new,
		    size_t new_len);
void je_malloc_stats_print(void (*write_cb)(void *, const char *), void *arg, const char *opts);

static void slow(void)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 2 + (end.tv_nsec >= 500000000);
	end.tv_nsec = (end.tv_nsec + 500000000) % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL))
		;
}

static bool is(const char *word)
{
	return strcmp(kind, word) == 0;
}

static bool ends(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n >= e && strcmp(name + n - e, end) == 0;
}

static int give(const void *bytes, size_t size, void *old, size_t *old_len)
{
	if (!old || !old_len)
		return 0;
	if (is("sizes"))
		size = 4;
	if (*old_len != size) {
		*old_len = size < *old_len ? size : *old_len;
		memcpy(old, bytes, *old_len);
		return EINVAL;
	}
	memcpy(old, bytes, size);
	return 0;
}

static int number(uint64_t v, size_t size, void *old, size_t *old_len)
{
	return give(&v, size, old, old_len);
}

static int text(const char *v, void *old, size_t *old_len)
{
	return give(&v, sizeof(v), old, old_len);
}

/* The names that are answered in every kind, so that it is looked at at all. */
static int basic(const char *name, void *old, size_t *old_len, bool *done)
{
	*done = true;
	if (!strcmp(name, "version"))
		return text(version, old, old_len);
	if (!strcmp(name, "epoch"))
		return number(7, 8, old, old_len);
	if (!strcmp(name, "arenas.narenas"))
		return number(is("many") ? UINT32_MAX : 2, 4, old, old_len);
	if (!strcmp(name, "arenas.page"))
		return number(4096, 8, old, old_len);
	*done = false;
	return 0;
}

static int of_arena(const char *name, unsigned long i, void *old, size_t *old_len)
{
	bool there = is("many") || i == 0;

	if (ends(name, ".initialized"))
		return number(there, 1, old, old_len);
	if (!there)
		return strncmp(name, "stats.", 6) == 0 ? ENOENT : EFAULT;
	if (ends(name, ".nthreads"))
		return number(1, 4, old, old_len);
	if (ends(name, ".dss"))
		return text("secondary", old, old_len);
	return number(4096, 8, old, old_len);
}

/* All bits set, of whatever size is asked for. */
static int garbage(const char *name, void *old, size_t *old_len)
{
	const char *wild = is("strings") ? endless : (const char *)1;

	if (ends(name, ".dss") || ends(name, "malloc_conf") || ends(name, "metadata_thp"))
		return give(&wild, sizeof(wild), old, old_len);
	if (old && old_len)
		memset(old, 0xff, *old_len);
	return 0;
}

int je_mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
{
	const char *at = strstr(name, "arenas.") == name + 6 ? name + 13 : name + 6;
	bool done;
	int rc = basic(name, old, old_len, &done);

	(void)new, (void)new_len;
	if (done)
		return rc;
	if (code)
		return code;
	if (is("slow") && strcmp(name, "opt.narenas") == 0)
		slow();
	if (is("garbage") || is("strings"))
		return garbage(name, old, old_len);
	if (strncmp(name, "arena.", 6) == 0 || strncmp(name, "stats.arenas.", 13) == 0)
		return of_arena(name, strtoul(at, NULL, 10), old, old_len);
	if (is("old") && strncmp(name, "opt.hpa", 7) == 0)
		return ENOENT;
	if (is("old") && (!strcmp(name, "config.prof") || !strcmp(name, "opt.prof")))
		return number(!strcmp(name, "config.prof"), 1, old, old_len);
	if (is("old") && strncmp(name, "prof.", 5) == 0)
		return ENOENT;
	return number(1, old_len ? *old_len : 8, old, old_len);
}

/* By its number: the first of it is that of a name in this list. */
static char known[64][80];
static size_t n_known;

int je_mallctlnametomib(const char *name, size_t *mib, size_t *n)
{
	size_t parts = 0, slot;
	char *end;

	for (slot = 0; slot < n_known && strcmp(known[slot], name); slot++)
		;
	if (slot == n_known) {
		if (n_known == 64)
			return ENOENT;
		snprintf(known[n_known++], sizeof(known[0]), "%s", name);
	}
	for (const char *s = name; s; s = strchr(s, '.') ? strchr(s, '.') + 1 : NULL, parts++) {
		size_t v = strtoul(s, &end, 10);

		if (parts < *n)
			mib[parts] = end != s ? v : slot;
	}
	*n = is("path") ? 99 : parts;
	return code > 0 && code < 64 && strncmp(name, "arena.0.init", 12) != 0 ? code : 0;
}

int je_mallctlbymib(const size_t *mib, size_t n, void *old, size_t *old_len, void *new,
		    size_t new_len)
{
	char name[128] = "";
	size_t used = 0, part = 0;

	if (mib[0] >= n_known)
		wrong("a number without a name: %zu", mib[0]);
	for (const char *s = known[mib[0]]; *s && part < n; part++) {
		size_t len = strcspn(s, ".");

		if (*s >= '0' && *s <= '9')
			used += (size_t)snprintf(name + used, sizeof(name) - used, "%zu",
						 mib[part]);
		else
			used += (size_t)snprintf(name + used, sizeof(name) - used, "%.*s", (int)len,
						 s);
		s += len;
		if (*s == '.')
			used += (size_t)snprintf(name + used, sizeof(name) - used, "%c", *s++);
	}
	return je_mallctl(name, old, old_len, new, new_len);
}

void je_malloc_stats_print(void (*write_cb)(void *, const char *), void *arg, const char *opts)
{
	write_cb(arg, "{\"made up\": \"\x1b[31m ");
	write_cb(arg, opts ? opts : "none");
	write_cb(arg, "\"}\n");
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	kind = argc > 1 ? argv[1] : "many";
	code = atoi(kind);
	memset(endless, 1, sizeof(endless));
	snprintf(version, sizeof(version), "%s-0-g54eaed1d8b56", is("old") ? "5.2.1" : "5.3.0");
	if (pthread_create(&t, NULL, idle, NULL))
		wrong("no thread");
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
