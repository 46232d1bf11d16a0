// SPDX-License-Identifier: GPL-3.0-or-later
#include "limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"

#define TEXT_MAX ((size_t)1 << 20)
/*
 * The pages that a session and a call touch, the kernel's for a thread among them, are some ten; a
 * call of the allocator may touch more, and the kernel charges in batches of 64
 * (MEMCG_CHARGE_BATCH).
 */
#define MEMORY_MARGIN ((uint64_t)512 * 1024)
/* A memory file in three places and two pipes, in a table of descriptors that is empty otherwise.
 */
#define PROXY_FILES 7
/* Code, memory, guard, stack. */
#define OUR_MAPPINGS 4

/* ---- reading */

static const struct line {
	const char *name;
	size_t offset;
} lines[] = {
	{ "Max address space", offsetof(struct limits, as) },
	{ "Max data size", offsetof(struct limits, data) },
	{ "Max processes", offsetof(struct limits, nproc) },
	{ "Max open files", offsetof(struct limits, nofile) },
	{ "Max file size", offsetof(struct limits, fsize) },
	{ "Max locked memory", offsetof(struct limits, memlock) },
};

/* The soft limit follows the name: a number, or "unlimited". */
static bool take_line(const char *s, struct limits *out)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		size_t n = strlen(lines[i].name);
		uint64_t *to = (uint64_t *)((char *)out + lines[i].offset);

		if (strncmp(s, lines[i].name, n) != 0)
			continue;
		s += n;
		s += strspn(s, " ");
		errno = 0;
		*to = *s >= '0' && *s <= '9' ? strtoull(s, NULL, 10) : LIMIT_NONE;
		return true;
	}
	return false;
}

int limits_parse(const char *text, struct limits *out)
{
	bool found = false;

	memset(out, 0xff, sizeof(*out)); /* LIMIT_NONE each */
	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s != 0)
		found |= take_line(s, out);
	return found ? 0 : -EINVAL;
}

/* All threads of the machine, of /proc/loadavg: "0.1 0.2 0.3 running/ALL last". */
static uint64_t all_threads(void)
{
	uint64_t all = LIMIT_NONE;
	char *text, *slash;
	size_t len;

	if (proc_read(AT_FDCWD, "/proc/loadavg", 4096, &text, &len))
		return LIMIT_NONE;
	slash = strchr(text, '/');
	if (slash)
		all = strtoull(slash + 1, NULL, 10);
	free(text);
	return all;
}

static uint64_t count_user_threads(uid_t uid)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	uint64_t sum = 0;

	while (dir && (e = readdir(dir)) != NULL) {
		struct proc_status st;
		char path[300];

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/status", e->d_name);
		if (status_read(AT_FDCWD, path, &st) == 0 && st.uid[0] == uid)
			sum += (uint64_t)st.threads;
	}
	if (dir)
		closedir(dir);
	return sum;
}

static bool has_cap(const struct proc_status *st, unsigned cap)
{
	return st->cap_eff >> cap & 1;
}

/* copy_process: RLIMIT_NPROC does not bind root, nor who has one of these. */
static bool nproc_binds(const struct room *r)
{
	return r->limits.nproc != LIMIT_NONE && r->status.uid[0] != 0 &&
	       !has_cap(&r->status, CAP_SYS_RESOURCE) && !has_cap(&r->status, CAP_SYS_ADMIN);
}

static uint64_t read_map_count(void)
{
	uint64_t v = LIMIT_NONE;
	char *text;
	size_t len;

	if (proc_read(AT_FDCWD, "/proc/sys/vm/max_map_count", 64, &text, &len))
		return LIMIT_NONE;
	if (*text >= '0' && *text <= '9')
		v = strtoull(text, NULL, 10);
	free(text);
	return v;
}

static void read_cgroups(const struct target *t, bool held, struct room *out)
{
	struct cgroup v[CGROUP_KINDS];

	cgroup_open(t, held, v);
	/* what cannot be read limits nothing */
	(void)cgroup_tightest(&v[CGROUP_MEMORY], &out->memory);
	(void)cgroup_tightest(&v[CGROUP_PIDS], &out->pids);
	cgroup_close(v);
}

void limits_soft(const struct target *t, struct limits *out)
{
	char *text;
	size_t len;

	memset(out, 0xff, sizeof(*out));
	if (proc_read(t->procfd, "limits", TEXT_MAX, &text, &len))
		return;
	if (limits_parse(text, out))
		memset(out, 0xff, sizeof(*out));
	free(text);
}

int limits_read(const struct target *t, bool held, struct room *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = status_read(t->procfd, "status", &out->status);
	if (rc)
		return rc;
	limits_soft(t, &out->limits);
	/* a look at every process is only worth it where there are as many threads as that */
	if (nproc_binds(out) && out->limits.nproc <= all_threads())
		out->user_threads = count_user_threads(out->status.uid[0]);
	out->map_count = read_map_count();
	read_cgroups(t, held, out);
	return 0;
}

/* ---- judging */

/* may_expand_vm: over the limit with what comes on top. */
static bool exceeds(uint64_t limit, uint64_t used, uint64_t more)
{
	return limit != LIMIT_NONE && (used > limit || more > limit - used);
}

static int judge_mapping(const struct room *r, const struct need *n, struct diag *d)
{
	const struct proc_status *st = &r->status;

	if (exceeds(r->limits.as, st->vm_size, n->region))
		return cause_fail(d, -ENOMEM, CAUSE_LIMIT_ADDRESS_SPACE,
				  "RLIMIT_AS of process %d (%s) is %" PRIu64 " bytes, %" PRIu64
				  " are mapped, a call needs %" PRIu64 " more",
				  (int)st->pid, st->name, r->limits.as, st->vm_size, n->region);
	if (exceeds(r->map_count, n->mappings, OUR_MAPPINGS))
		return cause_fail(d, -ENOMEM, CAUSE_LIMIT_MAPPINGS,
				  "process %d (%s) has %zu mappings, vm.max_map_count is %" PRIu64
				  ", a call needs %d more",
				  (int)st->pid, st->name, n->mappings, r->map_count, OUR_MAPPINGS);
	if (exceeds(r->limits.data, st->vm_data, n->writable))
		return cause_fail(d, -ENOMEM, CAUSE_LIMIT_DATA,
				  "RLIMIT_DATA of process %d (%s) is %" PRIu64 " bytes, %" PRIu64
				  " are in use, a call needs %" PRIu64 " more",
				  (int)st->pid, st->name, r->limits.data, st->vm_data, n->writable);
	return 0;
}

static int judge_memory(const struct room *r, struct diag *d)
{
	const struct cgroup_limit *m = &r->memory;
	/* lowered below what there is: that much has to go first */
	uint64_t over = m->usage > m->limit ? m->usage - m->limit : 0;

	if (!m->path[0] || !exceeds(m->limit, m->usage, MEMORY_MARGIN) ||
	    m->reclaimable >= over + 2 * MEMORY_MARGIN)
		return 0;
	return cause_fail(d, -ENOMEM, CAUSE_LIMIT_CGROUP_MEMORY,
			  "the memory cgroup %s of process %d (%s) is full: %" PRIu64 " of %" PRIu64
			  " bytes are in use, and only %" PRIu64 " could be dropped",
			  m->path, (int)r->status.pid, r->status.name, m->usage, m->limit,
			  m->reclaimable);
}

int limits_judge_thread(const struct room *r, struct diag *d)
{
	const struct proc_status *st = &r->status;

	if (r->pids.path[0] && exceeds(r->pids.limit, r->pids.usage, 1))
		return cause_fail(d, -EAGAIN, CAUSE_LIMIT_CGROUP_PIDS,
				  "pids.max of the cgroup %s of process %d (%s) is %" PRIu64
				  ", %" PRIu64 " are there: no thread can be created",
				  r->pids.path, (int)st->pid, st->name, r->pids.limit,
				  r->pids.usage);
	if (r->user_threads && nproc_binds(r) && exceeds(r->limits.nproc, r->user_threads, 1))
		return cause_fail(d, -EAGAIN, CAUSE_LIMIT_PROCESSES,
				  "RLIMIT_NPROC of process %d (%s) is %" PRIu64
				  ", uid %u has %" PRIu64 " threads: no other can be created",
				  (int)st->pid, st->name, r->limits.nproc, st->uid[0],
				  r->user_threads);
	return 0;
}

int limits_judge(const struct room *r, const struct need *n, struct diag *d)
{
	int rc = judge_memory(r, d);

	if (rc == 0)
		rc = judge_mapping(r, n, d);
	if (rc || n->mode != HM_MODE_PROXY)
		return rc;
	if (r->limits.nofile < PROXY_FILES)
		return cause_fail(d, -EMFILE, CAUSE_LIMIT_FILES,
				  "RLIMIT_NOFILE of process %d (%s) is %" PRIu64
				  ", a thread of ours needs %d descriptors in a table of its own",
				  (int)r->status.pid, r->status.name, r->limits.nofile,
				  PROXY_FILES);
	return limits_judge_thread(r, d);
}
