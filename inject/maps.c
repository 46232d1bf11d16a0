// SPDX-License-Identifier: GPL-3.0-or-later
#include "maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "permit.h"

/* vm.max_map_count is 65530 unless raised, a line rarely over 200 bytes. */
#define MAPS_MAX ((size_t)256 << 20)

/* A hexadecimal (or decimal) number of at most 64 bits at *s that ends at stop, *s moves behind. */
static int take_number(char **s, int base, char stop, uint64_t *out)
{
	char *end;
	unsigned char c = (unsigned char)**s;
	bool digit = (c >= '0' && c <= '9') || (base == 16 && c >= 'a' && c <= 'f');

	if (!digit)
		return -EINVAL;
	errno = 0;
	*out = strtoull(*s, &end, base);
	if (errno || *end != stop)
		return -EINVAL;
	*s = end + 1;
	return 0;
}

static int take_perms(char **s, struct map *m)
{
	static const struct {
		char set;
		int prot;
	} bits[] = { { 'r', PROT_READ }, { 'w', PROT_WRITE }, { 'x', PROT_EXEC } };
	char *p = *s;

	for (int i = 0; i < 3; i++) {
		if (p[i] == bits[i].set)
			m->prot |= bits[i].prot;
		else if (p[i] != '-')
			return -EINVAL;
	}
	if ((p[3] != 'p' && p[3] != 's') || p[4] != ' ')
		return -EINVAL;
	m->shared = p[3] == 's';
	*s = p + 5;
	return 0;
}

/* The kernel writes a newline in a name as \012 (mangle_path), any character may be so. */
static void decode_octal(char *s)
{
	char *w = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			int c = (s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0');

			/* a NUL would hide the rest of the name */
			if (c) {
				*w++ = (char)c;
				s += 4;
				continue;
			}
		}
		*w++ = *s++;
	}
	*w = '\0';
}

static void take_name(char *s, struct map *m)
{
	static const char suffix[] = " (deleted)";
	size_t len;

	while (*s == ' ')
		s++;
	len = strlen(s);
	/* only a file can be deleted; "[anon:...]" and kin are names that the target chose */
	if (m->inode && len >= sizeof(suffix) - 1 &&
	    strcmp(s + len - (sizeof(suffix) - 1), suffix) == 0) {
		s[len - (sizeof(suffix) - 1)] = '\0';
		m->deleted = true;
	}
	decode_octal(s);
	m->name = s;
}

int map_parse(char *s, struct map *m)
{
	uint64_t major, minor;
	char *name;

	memset(m, 0, sizeof(*m));
	if (take_number(&s, 16, '-', &m->start) || take_number(&s, 16, ' ', &m->end) ||
	    take_perms(&s, m) || take_number(&s, 16, ' ', &m->offset) ||
	    take_number(&s, 16, ':', &major) || take_number(&s, 16, ' ', &minor))
		return -EINVAL;
	if (m->start >= m->end || major > UINT32_MAX || minor > UINT32_MAX)
		return -EINVAL;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	/* the inode is followed by blanks and the name, or by nothing at all */
	name = s + strspn(s, "0123456789");
	if (take_number(&s, 10, *name, &m->inode) || (*name && *name != ' '))
		return -EINVAL;
	take_name(name, m);
	return 0;
}

static size_t count_lines(const char *s, size_t len)
{
	size_t n = 0;

	for (const char *p = s; p < s + len; n++) {
		const char *nl = memchr(p, '\n', (size_t)(s + len - p));

		p = nl ? nl + 1 : s + len;
	}
	return n;
}

/*
 * The kernel goes through the address space upwards, and binary search relies on that. But a read
 * gives a page of text at most, and the next one goes on behind the end of the last mapping: one
 * that has grown or was merged with its neighbours in the meantime is shown again, with its old
 * start. What is newer is true.
 */
static int make_room(struct maps *out, const struct map *m)
{
	struct map *last = out->n ? &out->v[out->n - 1] : NULL;

	if (last && last->end >= m->end)
		return -EINVAL;
	while (out->n && out->v[out->n - 1].start >= m->start)
		out->n--;
	if (out->n && out->v[out->n - 1].end > m->start)
		out->v[out->n - 1].end = m->start;
	return 0;
}

/* Takes text (len bytes and a NUL) over, also on error. */
static int parse_owned(char *text, size_t len, struct maps *out)
{
	size_t lines = count_lines(text, len);
	char *p = text;

	memset(out, 0, sizeof(*out));
	out->text = text;
	if (memchr(text, '\0', len))
		goto bad;
	out->v = calloc(lines ? lines : 1, sizeof(*out->v));
	if (!out->v) {
		maps_free(out);
		return -ENOMEM;
	}
	for (size_t i = 0; i < lines; i++) {
		char *nl = strchr(p, '\n');
		struct map m;

		if (nl)
			*nl = '\0';
		if (map_parse(p, &m))
			goto bad;
		if (make_room(out, &m))
			goto bad;
		out->v[out->n++] = m;
		p = nl ? nl + 1 : p;
	}
	return 0;
bad:
	maps_free(out);
	return -EINVAL;
}

char *maps_copy(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

int maps_parse(const char *text, size_t len, struct maps *out)
{
	char *copy = maps_copy(text, len);

	memset(out, 0, sizeof(*out));
	return copy ? parse_owned(copy, len, out) : -ENOMEM;
}

int maps_fail(const struct target *t, const char *name, size_t max, int r, struct diag *d)
{
	char path[32];

	if (r == -ESRCH || !target_alive(t))
		return target_gone(t, d);
	if (r == -EACCES || r == -EPERM)
		return permit_explain(t, d);
	if (r == -EFBIG)
		return diag_fail(d, r, HM_UNSUPPORTED, "maps-too-large",
				 "nothing can be done from outside with so many mappings",
				 "/proc/%d/%s is larger than %zu MiB", (int)t->pid, name,
				 max >> 20);
	snprintf(path, sizeof(path), "/%s", name);
	return target_unreadable(t, path, r, d);
}

int maps_text(const struct target *t, const char *name, const char *older, size_t max, char **text,
	      size_t *len, struct diag *d)
{
	int r = proc_read(t->procfd, name, max, text, len);

	/* so says a process that is gone, too */
	if (r == -ENOENT && older) {
		name = older;
		r = proc_read(t->procfd, name, max, text, len);
	}
	return r ? maps_fail(t, name, max, r, d) : 0;
}

int maps_read(const struct target *t, struct maps *out, struct diag *d)
{
	char *text;
	size_t len;
	int r;

	memset(out, 0, sizeof(*out));
	r = maps_text(t, "maps", NULL, MAPS_MAX, &text, &len, d);
	if (r)
		return r;
	r = parse_owned(text, len, out);
	if (r)
		return diag_internal(d, r, "/proc/PID/maps has an unknown form");
	/* a process that has just ended has no mappings any more, yet the file opens */
	if (out->n == 0) {
		maps_free(out);
		return target_gone(t, d);
	}
	return 0;
}

void maps_free(struct maps *m)
{
	free(m->v);
	free(m->text);
	memset(m, 0, sizeof(*m));
}

const struct map *maps_find(const struct maps *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr < m->v[mid].start)
			hi = mid;
		else if (addr >= m->v[mid].end)
			lo = mid + 1;
		else
			return &m->v[mid];
	}
	return NULL;
}

bool map_is_anon(const struct map *m)
{
	/* mapped by the kernel from pages of its own: special mappings, not the process's memory */
	static const char *const special[] = { "[vdso]",     "[vvar]",	  "[vvar_vclock]",
					       "[vsyscall]", "[uprobes]", "[sigpage]" };

	if (m->inode || (m->name[0] && m->name[0] != '['))
		return false;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (strcmp(m->name, special[i]) == 0)
			return false;
	}
	return true;
}
