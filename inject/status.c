// SPDX-License-Identifier: GPL-3.0-or-later
#include "status.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

/* linux/sched.h; shown in field 9 of stat */
#define PF_EXITING 0x00000004U
#define PF_KTHREAD 0x00200000U

#define STAT_MAX 4096 /* /proc/PID/stat is one line of some hundred bytes */

/* Writes the escape of c into e (room for 5), returns its length. */
static size_t escape_char(unsigned char c, char e[5])
{
	static const char named[] = "\aa\bb\tt\nn\vv\ff\rr";

	if (c >= 0x20 && c < 0x7f) {
		e[0] = (char)c;
		return 1;
	}
	for (const char *p = named; *p; p += 2) {
		if ((unsigned char)p[0] == c) {
			e[0] = '\\';
			e[1] = p[1];
			return 2;
		}
	}
	return (size_t)snprintf(e, 5, "\\x%02x", c);
}

void escape_copy(char *dst, size_t size, const char *src, size_t len)
{
	size_t used = 0;

	if (size == 0)
		return;
	for (size_t i = 0; i < len; i++) {
		char e[5];
		size_t n = escape_char((unsigned char)src[i], e);

		/* an escape is never cut in two */
		if (used + n + 1 > size)
			break;
		memcpy(dst + used, e, n);
		used += n;
	}
	dst[used] = '\0';
}

/* One number at *s, leading blanks skipped; *s moves behind it. */
static int take_number(const char **s, int base, uint64_t *out)
{
	const char *p = *s;
	char *end;

	while (*p == ' ' || *p == '\t')
		p++;
	/* strtoull would take signs and newlines */
	if (!((*p >= '0' && *p <= '9') || (base == 16 && *p >= 'a' && *p <= 'f')))
		return -EINVAL;
	errno = 0;
	*out = strtoull(p, &end, base);
	if (errno)
		return -EINVAL;
	*s = end;
	return 0;
}

/* ---- stat */

/* The text behind the last ')': comm may hold anything, but no later field holds a parenthesis. */
static const char *stat_behind_comm(const char *text)
{
	const char *p = strrchr(text, ')');

	return p ? p + 1 : NULL;
}

/* Unsigned field n (as proc(5) counts, from 4 on). */
static int stat_field(const char *text, int n, uint64_t *out)
{
	const char *p = stat_behind_comm(text);

	if (!p)
		return -EINVAL;
	for (int i = 3; i <= n; i++) {
		while (*p == ' ')
			p++;
		if (i < n)
			p += strcspn(p, " \n");
	}
	return take_number(&p, 10, out);
}

int stat_parse(const char *text, char *state, uint64_t *start_time, uint64_t *minflt)
{
	const char *p = stat_behind_comm(text);
	uint64_t start, faults;

	if (!p || p[0] != ' ' || p[1] <= ' ')
		return -EINVAL;
	if (stat_field(text, 22, &start) || stat_field(text, 10, &faults))
		return -EINVAL;
	if (state)
		*state = p[1];
	if (start_time)
		*start_time = start;
	if (minflt)
		*minflt = faults;
	return 0;
}

int minflt_read(int procfd, uint64_t *minflt)
{
	size_t len;
	char *text;
	int rc = proc_read(procfd, "stat", STAT_MAX, &text, &len);

	if (rc)
		return rc;
	rc = stat_parse(text, NULL, NULL, minflt);
	free(text);
	return rc;
}

int program_read(int procfd, struct program_mark *out, uint64_t *minflt)
{
	size_t len;
	char *text;
	int rc = proc_read(procfd, "stat", STAT_MAX, &text, &len);

	if (rc)
		return rc;
	rc = stat_parse(text, NULL, NULL, minflt);
	if (!rc && (stat_field(text, 26, &out->code) || stat_field(text, 28, &out->stack)))
		rc = -EINVAL;
	free(text);
	return rc;
}

int stat_comm(const char *text, char *dst, size_t size)
{
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');

	if (!open || !close || close < open)
		return -EINVAL;
	escape_copy(dst, size, open + 1, (size_t)(close - open - 1));
	return 0;
}

int stat_exit_code(const char *text, int *status)
{
	uint64_t code;

	if (stat_field(text, 52, &code) || code > INT_MAX)
		return -EINVAL;
	*status = (int)code;
	return 0;
}

bool stat_is_kthread(const char *text)
{
	uint64_t flags;

	return stat_field(text, 9, &flags) == 0 && (flags & PF_KTHREAD);
}

bool stat_is_exiting(const char *text)
{
	uint64_t flags;

	return stat_field(text, 9, &flags) == 0 && (flags & PF_EXITING);
}

/* ---- status */

enum field_kind { F_NAME, F_CHAR, F_PID, F_INT, F_BOOL, F_ID4, F_HEX64, F_KB, F_NSPID, F_FEATURES };

static const struct field {
	const char *key;
	enum field_kind kind;
	size_t offset;
} fields[] = {
	{ "Name", F_NAME, offsetof(struct proc_status, name) },
	{ "State", F_CHAR, offsetof(struct proc_status, state) },
	{ "Tgid", F_PID, offsetof(struct proc_status, tgid) },
	{ "Pid", F_PID, offsetof(struct proc_status, pid) },
	{ "PPid", F_PID, offsetof(struct proc_status, ppid) },
	{ "TracerPid", F_PID, offsetof(struct proc_status, tracer) },
	{ "Uid", F_ID4, offsetof(struct proc_status, uid) },
	{ "Gid", F_ID4, offsetof(struct proc_status, gid) },
	{ "Threads", F_INT, offsetof(struct proc_status, threads) },
	{ "SigPnd", F_HEX64, offsetof(struct proc_status, sig_pending) },
	{ "ShdPnd", F_HEX64, offsetof(struct proc_status, shd_pending) },
	{ "SigBlk", F_HEX64, offsetof(struct proc_status, sig_blocked) },
	{ "SigIgn", F_HEX64, offsetof(struct proc_status, sig_ignored) },
	{ "SigCgt", F_HEX64, offsetof(struct proc_status, sig_caught) },
	{ "CapEff", F_HEX64, offsetof(struct proc_status, cap_eff) },
	{ "CapBnd", F_HEX64, offsetof(struct proc_status, cap_bnd) },
	{ "CapPrm", F_HEX64, offsetof(struct proc_status, cap_prm) },
	{ "VmSize", F_KB, offsetof(struct proc_status, vm_size) },
	{ "VmLck", F_KB, offsetof(struct proc_status, vm_locked) },
	{ "VmData", F_KB, offsetof(struct proc_status, vm_data) },
	{ "Seccomp", F_INT, offsetof(struct proc_status, seccomp) },
	{ "NoNewPrivs", F_BOOL, offsetof(struct proc_status, no_new_privs) },
	{ "Kthread", F_BOOL, offsetof(struct proc_status, kthread) },
	{ "NSpid", F_NSPID, offsetof(struct proc_status, nspid) },
	{ "x86_Thread_features", F_FEATURES, offsetof(struct proc_status, shadow_stack) },
};

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "ids");
_Static_assert(sizeof(pid_t) == sizeof(int), "pids");

/* The kernel has escaped newline and backslash in Name: undone, then escaped our way. */
static void take_name(char *dst, size_t size, const char *s, size_t len)
{
	char raw[64];
	size_t n = 0;

	for (size_t i = 0; i < len && n < sizeof(raw); i++) {
		char c = s[i];

		if (c == '\\' && i + 1 < len && (s[i + 1] == 'n' || s[i + 1] == '\\'))
			c = s[++i] == 'n' ? '\n' : '\\';
		raw[n++] = c;
	}
	escape_copy(dst, size, raw, n);
}

static int take_int(const char **s, int *out)
{
	uint64_t v;

	if (take_number(s, 10, &v) || v > INT32_MAX)
		return -EINVAL;
	*out = (int)v;
	return 0;
}

/* "1234 kB" in bytes */
static int take_kb(const char *s, uint64_t *out)
{
	uint64_t v;

	if (take_number(&s, 10, &v) || v > UINT64_MAX / 1024)
		return -EINVAL;
	*out = v * 1024;
	return 0;
}

static int take_ids(const char *s, uint32_t *id)
{
	for (int i = 0; i < 4; i++) {
		uint64_t v;

		if (take_number(&s, 10, &v) || v > UINT32_MAX)
			return -EINVAL;
		id[i] = (uint32_t)v;
	}
	return 0;
}

static void take_nspid(const char *s, struct proc_status *out)
{
	size_t n = 0;

	while (n < sizeof(out->nspid) / sizeof(out->nspid[0]) && take_int(&s, &out->nspid[n]) == 0)
		n++;
	out->nspid_len = n;
}

/* True if word is one of the blank separated words of s[0..len). */
static bool has_word(const char *s, size_t len, const char *word)
{
	size_t w = strlen(word);

	for (size_t i = 0; i + w <= len; i++) {
		bool starts = i == 0 || s[i - 1] == ' ' || s[i - 1] == '\t';
		bool ends = i + w == len || s[i + w] == ' ' || s[i + w] == '\t';

		if (starts && ends && memcmp(s + i, word, w) == 0)
			return true;
	}
	return false;
}

static int take_field(const struct field *f, const char *s, size_t len, struct proc_status *out)
{
	void *dst = (char *)out + f->offset;
	int v = 0;

	switch (f->kind) {
	case F_NAME:
		take_name(dst, sizeof(out->name), s, len);
		return 0;
	case F_CHAR:
		if (len == 0 || *s <= ' ' || *s > '~')
			return -EINVAL;
		*(char *)dst = *s;
		return 0;
	case F_PID:
	case F_INT:
		return take_int(&s, dst);
	case F_BOOL:
		if (take_int(&s, &v))
			return -EINVAL;
		*(bool *)dst = v != 0;
		return 0;
	case F_ID4:
		return take_ids(s, dst);
	case F_HEX64:
		return take_number(&s, 16, dst);
	case F_KB:
		return take_kb(s, dst);
	case F_NSPID:
		take_nspid(s, out);
		return 0;
	case F_FEATURES:
		*(bool *)dst = has_word(s, len, "shstk");
		return 0;
	}
	return -EINVAL;
}

static const struct field *find_field(const char *line, size_t keylen)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strlen(fields[i].key) == keylen && memcmp(fields[i].key, line, keylen) == 0)
			return &fields[i];
	}
	return NULL;
}

int status_parse(const char *text, struct proc_status *out)
{
	memset(out, 0, sizeof(*out));
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		const char *colon = memchr(line, ':', len);

		if (colon) {
			const struct field *f = find_field(line, (size_t)(colon - line));
			const char *s = colon + 1;

			while (*s == ' ' || *s == '\t')
				s++;
			if (f && take_field(f, s, (size_t)(line + len - s), out))
				return -EINVAL;
		}
		line += len;
		if (*line)
			line++;
	}
	return out->state && out->tgid && out->pid ? 0 : -EINVAL;
}

int status_read(int procfd, const char *path, struct proc_status *out)
{
	char *text;
	size_t len;
	int r = proc_read(procfd, path, (size_t)1 << 20, &text, &len);

	if (r)
		return r;
	r = status_parse(text, out);
	free(text);
	return r;
}
