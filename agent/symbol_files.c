// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../inject/elf_range.h"
#include "debugdata.h"
#include "symbol_lines.h"

#define BUILD_ID_MAX 64
#define PIECE	     ((size_t)256 * 1024)
#define DEBUG_DIR    "/usr/lib/debug"

static struct elf_file *open_path(symbol_open_fn open, void *arg, const char *path)
{
	struct elf_file *e;
	int fd = open(arg, &(struct symbol_map){ .path = path });

	return fd >= 0 && !elf_file_open(fd, &e) ? e : NULL;
}

static bool same_id(const struct elf_file *a, const struct elf_file *b)
{
	const unsigned char *x, *y;
	size_t n = elf_file_build_id(a, &x);

	return n && n == elf_file_build_id(b, &y) && !memcmp(x, y, n);
}

static struct elf_file *by_build_id(const struct elf_file *main, symbol_open_fn open, void *arg)
{
	char path[sizeof(DEBUG_DIR) + 2 * BUILD_ID_MAX + 32];
	const unsigned char *id;
	size_t n = elf_file_build_id(main, &id), i, at;
	struct elf_file *e;

	if (n < 2 || n > BUILD_ID_MAX)
		return NULL;
	at = (size_t)sprintf(path, DEBUG_DIR "/.build-id/%02x/", id[0]);
	for (i = 1; i < n; i++)
		at += (size_t)sprintf(path + at, "%02x", id[i]);
	strcpy(path + at, ".debug");
	e = open_path(open, arg, path);
	if (e && same_id(main, e))
		return e;
	elf_file_close(e);
	return NULL;
}

/* .gnu_debuglink: a file's name, zeros up to a multiple of four, its CRC-32. */
static bool read_link(struct elf_file *main, char *name, size_t size, uint32_t *crc)
{
	struct elf_range r;
	size_t len, at;

	if (elf_file_range(main, ".gnu_debuglink", &r, NULL) || r.size > size ||
	    elf_file_pread(main, r.offset, name, (size_t)r.size))
		return false;
	len = strnlen(name, (size_t)r.size);
	at = (len + 4) & ~(size_t)3;
	if (!len || at + sizeof(*crc) > r.size || strchr(name, '/') || !strcmp(name, "..") ||
	    !strcmp(name, "."))
		return false;
	memcpy(crc, name + at, sizeof(*crc));
	return true;
}

static bool crc_is(const struct elf_file *e, uint32_t want)
{
	uint64_t size = elf_file_size(e), at, len;
	unsigned char *buf = malloc(PIECE);
	uLong crc = 0;

	for (at = 0; buf && at < size; at += len) {
		len = size - at < PIECE ? size - at : PIECE;
		if (elf_file_pread(e, at, buf, (size_t)len))
			break;
		crc = crc32(crc, buf, (uInt)len);
	}
	free(buf);
	return buf && at == size && crc == want;
}

static struct elf_file *by_link(struct elf_file *main, const char *path, symbol_open_fn open,
				void *arg)
{
	static const char *const place[][2] = { { "", "" }, { "", "/.debug" }, { DEBUG_DIR, "" } };
	const char *slash = path ? strrchr(path, '/') : NULL, *own = slash ? slash + 1 : "";
	char link[NAME_MAX + 16], full[PATH_MAX];
	const unsigned char *id;
	struct elf_file *e;
	uint32_t crc;
	size_t i;

	if (!slash || path[0] != '/' || !read_link(main, link, sizeof(link), &crc))
		return NULL;
	for (i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
		if (i == 0 && !strcmp(link, own))
			continue;
		if ((size_t)snprintf(full, sizeof(full), "%s%.*s%s/%s", place[i][0],
				     (int)(slash - path), path, place[i][1], link) >= sizeof(full))
			continue;
		e = open_path(open, arg, full);
		if (e && (elf_file_build_id(main, &id) ? same_id(main, e) : crc_is(e, crc)))
			return e;
		elf_file_close(e);
	}
	return NULL;
}

static bool has_symtab(struct elf_file *e)
{
	struct elf_table t;

	return e && !elf_file_table(e, false, &t);
}

/*
 * .gnu_debugaltlink: a path, NUL, the build id of what it leads to. Only the part behind ".dwz/" is
 * used, where distributions put these files, and only below the usual directory.
 */
static struct elf_file *open_alt(struct elf_file *e, symbol_open_fn open, void *arg)
{
	char buf[PATH_MAX], path[PATH_MAX + sizeof(DEBUG_DIR)];
	const unsigned char *id;
	const char *tail;
	struct elf_file *alt;
	struct elf_range r;
	size_t len, n;

	if (elf_file_range(e, ".gnu_debugaltlink", &r, NULL) || r.size > sizeof(buf) ||
	    elf_file_pread(e, r.offset, buf, (size_t)r.size))
		return NULL;
	len = strnlen(buf, (size_t)r.size);
	tail = strstr(len < r.size ? buf : "", "/.dwz/");
	if (!tail || strstr(tail, "/../"))
		return NULL;
	snprintf(path, sizeof(path), DEBUG_DIR "%s", tail);
	alt = open_path(open, arg, path);
	n = alt ? elf_file_build_id(alt, &id) : 0;
	if (n && n == r.size - len - 1 && !memcmp(id, buf + len + 1, n))
		return alt;
	elf_file_close(alt);
	return NULL;
}

void symbol_files_find(struct elf_file *main, const char *path, symbol_open_fn open, void *arg,
		       struct symbol_files *f)
{
	bool lines = symbol_lines_there(main);

	*f = (struct symbol_files){ .main = main };
	if (!lines || !has_symtab(main))
		f->debug = by_build_id(main, open, arg);
	if (!f->debug && (!lines || !has_symtab(main)))
		f->debug = by_link(main, path, open, arg);
	if (!has_symtab(main) && !has_symtab(f->debug))
		f->mini = debugdata_open(main);
	if (symbol_files_lines(f))
		f->alt = open_alt(symbol_files_lines(f), open, arg);
}

struct elf_file *symbol_files_lines(const struct symbol_files *f)
{
	if (symbol_lines_there(f->main))
		return f->main;
	return f->debug && symbol_lines_there(f->debug) ? f->debug : NULL;
}

void symbol_files_close(struct symbol_files *f)
{
	elf_file_close(f->debug);
	elf_file_close(f->mini);
	elf_file_close(f->alt);
	*f = (struct symbol_files){ 0 };
}

struct source {
	struct elf_file *e;
	bool dynamic;
};

static int scan_all(struct symbol_scan *scan, const struct symbol_files *f,
		    enum symbols_state *state)
{
	/* .symtab has all that .dynsym has; the other two may lack what is exported */
	const struct source v[] = {
		{ f->main, false }, { f->main, true }, { f->debug, false }, { f->mini, false }
	};
	size_t i;
	int err;

	*state = SYMBOLS_NONE;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		if (!v[i].e)
			continue;
		err = symbol_scan_table(scan, v[i].e, v[i].dynamic);
		if (err == -ENOENT)
			continue;
		if (err == -ENOMEM)
			return err;
		if (err)
			*state = SYMBOLS_BAD;
		else if (*state != SYMBOLS_BAD && (*state != SYMBOLS_NAMES))
			*state = v[i].dynamic ? SYMBOLS_EXPORTED : SYMBOLS_NAMES;
		if (i == 0 && !err)
			break;
	}
	return 0;
}

int symbol_files_names(const struct symbol_files *f, const uint64_t *at, size_t n,
		       struct names *names, struct symbol_hit *hit, enum symbols_state *state)
{
	struct symbol_scan *scan;
	int err = symbol_scan_new(at, n, &scan);

	if (err)
		return err;
	err = scan_all(scan, f, state);
	if (!err)
		err = symbol_scan_end(scan, names, hit);
	symbol_scan_free(scan);
	return err;
}
