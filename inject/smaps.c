// SPDX-License-Identifier: GPL-3.0-or-later
#include "smaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "usage.h"

/* About 800 bytes for each mapping: 600,000 of them. */
#define SMAPS_TEXT_MAX ((size_t)512 << 20)
#define WINDOW	       ((size_t)128 << 10) /* a name has 16 KiB at most, with all its escapes */
#define NAMES	       ((size_t)16 << 10)

#define FIELD(key, member)                                                                         \
	{                                                                                          \
		key, sizeof(key) - 1, offsetof(struct smaps_row, member)                           \
	}

/* In the kernel's order (fs/proc/task_mmu.c): the next line is nearly always the next row. */
static const struct {
	const char *key;
	size_t len, offset;
} fields[] = {
	FIELD("KernelPageSize:", page_size),
	FIELD("Rss:", rss),
	FIELD("Pss:", pss),
	FIELD("Pss_Dirty:", pss_dirty),
	FIELD("Shared_Clean:", shared_clean),
	FIELD("Shared_Dirty:", shared_dirty),
	FIELD("Private_Clean:", private_clean),
	FIELD("Private_Dirty:", private_dirty),
	FIELD("Referenced:", referenced),
	FIELD("Anonymous:", anon),
	FIELD("KSM:", ksm),
	FIELD("LazyFree:", lazyfree),
	FIELD("AnonHugePages:", anon_huge),
	FIELD("ShmemPmdMapped:", shmem_huge),
	FIELD("FilePmdMapped:", file_huge),
	FIELD("Shared_Hugetlb:", shared_hugetlb),
	FIELD("Private_Hugetlb:", private_hugetlb),
	FIELD("Swap:", swap),
	FIELD("SwapPss:", swap_pss),
	FIELD("Locked:", locked),
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const struct {
	char letters[3];
	unsigned flag;
} flags[] = {
	{ "lo", SMAPS_LOCKED },	     { "ht", SMAPS_HUGETLB },	 { "hg", SMAPS_HUGE_ADVISED },
	{ "nh", SMAPS_HUGE_DENIED }, { "gd", SMAPS_GROWS_DOWN }, { "io", SMAPS_DEVICE },
	{ "pf", SMAPS_DEVICE },	     { "dc", SMAPS_NOT_FORKED }, { "wf", SMAPS_NOT_FORKED },
	{ "dd", SMAPS_NOT_DUMPED },  { "mg", SMAPS_MERGEABLE },	 { "ss", SMAPS_SHADOW_STACK },
};

static unsigned flag_of(const char *letters)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (memcmp(flags[i].letters, letters, 2) == 0)
			return flags[i].flag;
	return 0;
}

static void take_flags(const char *s, struct smaps_row *row)
{
	while (*s == ' ')
		s++;
	while (s[0] && s[1] && s[0] != ' ') {
		row->flags |= flag_of(s);
		s += strcspn(s, " ");
		while (*s == ' ')
			s++;
	}
}

/* One "Key: value" line. next is the row of the table that should come now. */
static int take_field(const char *line, struct smaps_row *row, size_t *next)
{
	for (size_t k = 0; k < FIELDS; k++) {
		size_t i = (*next + k) % FIELDS;
		uint64_t *value = (uint64_t *)((char *)row + fields[i].offset);

		if (strncmp(line, fields[i].key, fields[i].len) != 0)
			continue;
		*value = 0;
		*next = (i + 1) % FIELDS;
		row->seen_rss = row->seen_rss || value == &row->rss;
		return usage_add_kb(line + fields[i].len, value);
	}
	if (strncmp(line, "VmFlags:", 8) == 0)
		take_flags(line + 8, row);
	return 0;
}

/* Pieces, so that names that are there do not move. */
struct smaps_names {
	struct smaps_names *next;
	char text[];
};

struct parser {
	struct smaps *out;
	size_t cap, next;
	char *room; /* for names */
	size_t left;
};

static int grow(struct parser *p)
{
	size_t want = p->cap ? p->cap * 2 : 256;
	struct smaps_row *v;

	if (p->out->n < p->cap)
		return 0;
	v = reallocarray(p->out->v, want, sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->out->v = v;
	p->cap = want;
	return 0;
}

static int add_room(struct parser *p, size_t len)
{
	size_t size = len > NAMES ? len : NAMES;
	struct smaps_names *more = malloc(sizeof(*more) + size);

	if (!more)
		return -ENOMEM;
	more->next = p->out->names;
	p->out->names = more;
	p->room = more->text;
	p->left = size;
	return 0;
}

/* The name is in a line that does not stay. Neighbours often have the same one. */
static int keep_name(struct parser *p, struct map *m)
{
	size_t n = p->out->n, len = strlen(m->name) + 1;
	const char *before = n ? p->out->v[n - 1].map.name : "";
	int err = 0;

	if (strcmp(m->name, before) == 0) {
		m->name = before;
		return 0;
	}
	if (len > p->left)
		err = add_room(p, len);
	if (err)
		return err;
	memcpy(p->room, m->name, len);
	m->name = p->room;
	p->room += len;
	p->left -= len;
	return 0;
}

/* What lies below the end of the mapping before it has been told already. */
static void take_off_overlap(struct smaps *s)
{
	struct smaps_row *row = &s->v[s->n - 1];

	if (s->n < 2 || row->map.start >= row[-1].map.end)
		return;
	s->torn = true;
	if (row->map.end > row[-1].map.end)
		row->map.start = row[-1].map.end;
	else
		row->map.start = row->map.end = row[-1].map.end;
}

static int take_header(struct parser *p, char *line)
{
	struct smaps_row *row;
	int err = grow(p);

	if (err)
		return err;
	row = &p->out->v[p->out->n];
	memset(row, 0, sizeof(*row));
	err = map_parse(line, &row->map);
	if (!err)
		err = keep_name(p, &row->map);
	if (err)
		return err;
	p->out->n++;
	p->next = 0;
	take_off_overlap(p->out);
	return 0;
}

static int take_line(struct parser *p, char *line)
{
	const char *colon;

	/* addresses are in small hexadecimal letters, keys begin with a capital one */
	if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f'))
		return take_header(p, line);
	colon = strchr(line, ':');
	if (*line < 'A' || *line > 'Z' || !colon || p->out->n == 0)
		return -EINVAL;
	return take_field(line, &p->out->v[p->out->n - 1], &p->next);
}

/* A mapping whose figures are missing was cut off behind its address. */
static void check_rows(struct smaps *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->v[i].seen_rss)
			s->torn = true;
}

/* The whole lines of text, len bytes and a NUL; *rest is where the next one begins. */
static int take_lines(struct parser *p, char *text, size_t len, char **rest)
{
	int err = memchr(text, '\0', len) ? -EINVAL : 0;
	char *end;

	while (!err && (end = strchr(text, '\n'))) {
		*end = '\0';
		err = take_line(p, text);
		text = end + 1;
	}
	*rest = text;
	return err;
}

/* A last line that is not whole is not believed. */
static int end_parse(struct parser *p, const char *rest, int err)
{
	if (err) {
		smaps_free(p->out);
		return err;
	}
	p->out->torn |= *rest != '\0';
	check_rows(p->out);
	return 0;
}

int smaps_parse(const char *text, size_t len, struct smaps *out)
{
	struct parser p = { .out = out };
	char *copy = maps_copy(text, len), *rest = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	if (!copy)
		return -ENOMEM;
	err = take_lines(&p, copy, len, &rest);
	err = end_parse(&p, rest, err);
	free(copy);
	return err;
}

/* A kilobyte for each mapping is not kept: the lines are taken as they come. */
static int read_lines(int fd, struct parser *p)
{
	char *buf = malloc(WINDOW), *rest = buf;
	size_t have = 0, all = 0;
	int err = buf ? 0 : -ENOMEM;

	while (!err) {
		ssize_t n = read(fd, buf + have, WINDOW - 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? -errno : 0;
			break;
		}
		all += (size_t)n;
		have += (size_t)n;
		buf[have] = '\0';
		err = all > SMAPS_TEXT_MAX ? -EFBIG : take_lines(p, buf, have, &rest);
		have -= (size_t)(rest - buf);
		memmove(buf, rest, have + 1);
		rest = buf;
		/* no line is so long */
		if (!err && have == WINDOW - 1)
			err = -EINVAL;
	}
	err = end_parse(p, have ? "?" : "", err);
	free(buf);
	return err;
}

int smaps_read(const struct target *t, struct smaps *out, struct diag *d)
{
	struct parser p = { .out = out };
	int fd = openat(t->procfd, "smaps", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? -errno : 0;

	memset(out, 0, sizeof(*out));
	if (!r) {
		r = read_lines(fd, &p);
		close(fd);
	}
	if (r == -EINVAL || r == -ENOMEM)
		return diag_internal(d, r, "/proc/PID/smaps has an unknown form");
	if (r)
		return maps_fail(t, "smaps", SMAPS_TEXT_MAX, r, d);
	/* a process that has just ended has no mappings any more, yet the file opens */
	if (out->n == 0) {
		smaps_free(out);
		return target_gone(t, d);
	}
	return 0;
}

void smaps_free(struct smaps *s)
{
	while (s->names) {
		struct smaps_names *next = s->names->next;

		free(s->names);
		s->names = next;
	}
	free(s->v);
	memset(s, 0, sizeof(*s));
}
