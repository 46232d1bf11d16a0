// SPDX-License-Identifier: GPL-3.0-or-later
#include "cgroup_place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool copy(char out[CGROUP_PATH], const char *text, size_t len)
{
	if (len >= CGROUP_PATH)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* Is word one of the comma-separated ones in list? */
static bool listed(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list, *end = list + len; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t this = (size_t)((comma ? comma : end) - at);

		if (this == n && memcmp(at, word, n) == 0)
			return true;
		at += this + 1;
	}
	return false;
}

/* One line: ID:CONTROLLERS:PATH, of version 2 without controllers. False if it is not ours. */
static bool parse_self(const char *line, const char *end, const char *controller,
		       struct cgroup_place *out)
{
	const char *names = memchr(line, ':', (size_t)(end - line)), *path;
	size_t len;
	int version;

	path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
	if (!path)
		return false;
	len = (size_t)(path - ++names);
	path++;
	version = len == 0 ? 2 : 1;
	if (version == 1 && !listed(names, len, controller))
		return false;
	if (!copy(out->path, path, (size_t)(end - path)))
		return false;
	out->version = version;
	return true;
}

int cgroup_parse_self(const char *text, const char *controller, struct cgroup_place *out)
{
	memset(out, 0, sizeof(*out));
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (parse_self(line, end, controller, out) && out->version == 1)
			break;
	}
	return out->version ? 0 : -ENOENT;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/*
 * The kernel writes blank, tab, newline and backslash as three octal digits. (Not by sscanf, which
 * measures all of the text behind them first: a mountinfo may be long.)
 */
static bool unescape(char out[CGROUP_PATH], const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const char *s = text + i;
		int c = (unsigned char)*s;

		if (c == '\\' && i + 3 < len && is_octal(s[1]) && is_octal(s[2]) &&
		    is_octal(s[3])) {
			c = (s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0');
			i += 3;
		}
		if (n + 1 >= CGROUP_PATH || c == 0 || c > 255)
			return false;
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return true;
}

struct mount {
	char root[CGROUP_PATH], point[CGROUP_PATH];
};

/* Does "TYPE SOURCE SUPEROPTIONS" up to end say this version, and with it this controller? */
static bool is_hierarchy(const char *type, const char *end, int version, const char *controller)
{
	const char *options;

	if (version == 2)
		return strncmp(type, "cgroup2 ", 8) == 0;
	if (strncmp(type, "cgroup ", 7) != 0)
		return false;
	options = memrchr(type, ' ', (size_t)(end - type));
	return options && listed(options + 1, (size_t)(end - options - 1), controller);
}

/* One line: ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS */
static bool parse_mount(const char *line, const char *end, int version, const char *controller,
			struct mount *out)
{
	const char *field[5] = { line }, *dash;
	size_t len[5];

	for (int i = 0; i < 5; i++) {
		const char *blank = memchr(field[i], ' ', (size_t)(end - field[i]));

		if (!blank)
			return false;
		len[i] = (size_t)(blank - field[i]);
		if (i < 4)
			field[i + 1] = blank + 1;
	}
	dash = memmem(field[4], (size_t)(end - field[4]), " - ", 3);
	return dash && is_hierarchy(dash + 3, end, version, controller) &&
	       unescape(out->root, field[3], len[3]) && unescape(out->point, field[4], len[4]);
}

/* What is left of path below root; NULL if it lies elsewhere, or where a namespace hides it. */
static const char *path_below(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	path += n;
	if (strcmp(path, "/") == 0)
		return "";
	return strstr(path, "/..") ? NULL : path;
}

int cgroup_parse_mounts(const char *text, const char *controller, struct cgroup_place *out)
{
	size_t shortest = SIZE_MAX;
	struct mount m;

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *below;

		end = strchrnul(line, '\n');
		if (!parse_mount(line, end, out->version, controller, &m) ||
		    strlen(m.root) >= shortest)
			continue;
		below = path_below(out->path, m.root);
		if (!below)
			continue;
		shortest = strlen(m.root);
		memcpy(out->mount, m.point, strlen(m.point) + 1);
		memcpy(out->below, below, strlen(below) + 1);
	}
	return shortest == SIZE_MAX ? -ENOENT : 0;
}
