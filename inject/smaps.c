// SPDX-License-Identifier: GPL-3.0-or-later
#include "smaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usage.h"

/* About 800 bytes for each mapping: 600,000 of them. */
#define SMAPS_TEXT_MAX ((size_t)512 << 20)

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

struct parser {
	struct smaps *out;
	size_t cap, next;
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

static int parse_owned(char *text, size_t len, struct smaps *out)
{
	struct parser p = { .out = out };
	int err = memchr(text, '\0', len) ? -EINVAL : 0;

	memset(out, 0, sizeof(*out));
	out->text = text;
	for (char *line = text; !err && *line;) {
		char *end = strchr(line, '\n');

		if (!end) {
			out->torn = true; /* the last line is not whole: it is not believed */
			break;
		}
		*end = '\0';
		err = take_line(&p, line);
		line = end + 1;
	}
	if (err)
		smaps_free(out);
	else
		check_rows(out);
	return err;
}

int smaps_parse(const char *text, size_t len, struct smaps *out)
{
	char *copy = maps_copy(text, len);

	memset(out, 0, sizeof(*out));
	return copy ? parse_owned(copy, len, out) : -ENOMEM;
}

int smaps_read(const struct target *t, struct smaps *out, struct diag *d)
{
	char *text;
	size_t len;
	int r;

	memset(out, 0, sizeof(*out));
	r = maps_text(t, "smaps", NULL, SMAPS_TEXT_MAX, &text, &len, d);
	if (r)
		return r;
	r = parse_owned(text, len, out);
	if (r)
		return diag_internal(d, r, "/proc/PID/smaps has an unknown form");
	/* a process that has just ended has no mappings any more, yet the file opens */
	if (out->n == 0) {
		smaps_free(out);
		return target_gone(t, d);
	}
	return 0;
}

void smaps_free(struct smaps *s)
{
	free(s->v);
	free(s->text);
	memset(s, 0, sizeof(*s));
}
