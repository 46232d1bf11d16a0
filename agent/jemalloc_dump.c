// SPDX-License-Identifier: GPL-3.0-or-later
/* A heap profile is brought here without a file. */
#include "jemalloc_prof.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../inject/cause.h"
#include "../inject/limits.h"
#include "../inject/memfile.h"
#include "dump_maps.h"
#include "jemalloc_call.h"
#include "jemalloc_ctl.h"

/*
 * The memory file counts as the target's until it is closed. Twenty thousand stacks of twenty
 * frames are some 10 MB; what has no room for that is left alone.
 */
#define DUMP_ROOM ((uint64_t)16 << 20)
#define DUMP_MAX  ((uint64_t)512 << 20)
#define MAPS_MAX  ((size_t)64 << 20)

static const char magic[] = "heap_v2/";

/* What is read beforehand, with nobody held. */
static int check_room(const struct process *p, struct limits *limits, struct diag *d)
{
	struct room room;
	uint64_t left;
	int rc = limits_read(&p->t, false, &room);

	if (rc)
		return target_unreadable(&p->t, "/status", rc, d);
	*limits = room.limits;
	left = room.memory.path[0] ? cgroup_room(&room.memory) : CGROUP_NO_LIMIT;
	if (left >= DUMP_ROOM)
		return 0;
	return diag_fail(d, -ENOMEM, HM_UNSAFE, "no-room-for-dump",
			 "raise the limit for the moment: until a profile is here it is kept in "
			 "memory there, and the OOM killer could kill for it",
			 "the memory cgroup %s of process %d has %" PRIu64
			 " bytes left, a profile may need %" PRIu64,
			 room.memory.path, (int)p->t.pid, left, DUMP_ROOM);
}

/* mallctl("prof.dump", NULL, NULL, &name, sizeof(name)). */
static int prepare_dump(struct session *s, uint64_t fn, char **path, struct call *c)
{
	const struct ctl_io how = { .write = true, .size = sizeof(uint64_t) };
	struct ctl_call io;
	uint64_t name;
	int rc;

	*path = session_alloc(s, sizeof(MEMFILE_PATH));
	if (!*path)
		return -ENOMEM;
	memcpy(*path, MEMFILE_PATH, sizeof(MEMFILE_PATH));
	rc = ctl_call_name(s, fn, "prof.dump", &how, c, &io);
	if (rc)
		return rc;
	name = session_addr(s, *path);
	memcpy(io.new, &name, sizeof(name));
	return 0;
}

/*
 * A file that grows beyond RLIMIT_FSIZE sends its writer SIGXFSZ, whose default is death
 * (setrlimit(2), signal(7)). It is blocked while the call runs. On our own thread it goes with
 * that; on a borrowed one it has to be taken off before the thread has its own mask again, and by
 * the same batch, so that it is also where we are gone: sigtimedwait(&set, NULL, &no_time).
 */
static int prepare_signal(const struct process *p, struct call *c, struct diag *d)
{
	struct session *s = p->session;
	uint64_t *set = session_alloc(s, 128); /* sigset_t */
	struct timespec *no_time = session_alloc(s, sizeof(*no_time));
	const struct module *libc = modules_glibc(&p->mods);
	struct symbol f;

	if (!set || !no_time)
		return diag_internal(d, -ENOMEM, "the dump");
	if (!libc || module_function(libc, "sigtimedwait", &f))
		return cause_fail(d, -EFBIG, CAUSE_LIMIT_FILE_SIZE,
				  "RLIMIT_FSIZE of process %d is limited: going beyond it would "
				  "send its only thread SIGXFSZ",
				  (int)p->t.pid);
	*set = (uint64_t)1 << (SIGXFSZ - 1);
	*c = (struct call){
		.fn = f.addr,
		.arg = { session_addr(s, set), 0, session_addr(s, no_time) },
	};
	return 0;
}

/* The whole file; its writer may be hostile, so its size is what was read. */
static int read_file(int fd, char **text, size_t *len, struct diag *d)
{
	struct stat st;
	size_t at = 0;

	if (fstat(fd, &st))
		return diag_internal(d, -errno, "reading the profile");
	if (st.st_size < 0 || (uint64_t)st.st_size > DUMP_MAX)
		return diag_fail(d, -EFBIG, HM_CALL_FAILED, "dump-failed",
				 "`prof reset LG` with a larger LG makes smaller profiles",
				 "the profile has %" PRId64 " bytes, more than %" PRIu64
				 " are not taken",
				 (int64_t)st.st_size, DUMP_MAX);
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return diag_internal(d, -ENOMEM, "reading the profile");
	while (at < (size_t)st.st_size) {
		ssize_t n = pread(fd, *text + at, (size_t)st.st_size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	(*text)[at] = '\0';
	*len = at;
	return 0;
}

/* Why there is no whole profile; size is that of the file, 0 without one. */
static int dump_failed(const struct process *p, const struct allocator *a, const struct call *c,
		       const struct limits *limits, uint64_t size, struct diag *d)
{
	int rc = (int)c->ret;

	if (rc && rc != EFAULT)
		return jemalloc_refused(a, "prof.dump", true, rc, d);
	if (size >= limits->fsize)
		return cause_fail(d, -EFBIG, CAUSE_LIMIT_FILE_SIZE,
				  "RLIMIT_FSIZE of process %d is %" PRIu64
				  " bytes, the profile is larger",
				  (int)p->t.pid, limits->fsize);
	return diag_fail(d, -EIO, HM_CALL_FAILED, "dump-failed",
			 "look at its memory limit and its seccomp filter (`check`); nothing is "
			 "left of it in the target",
			 "jemalloc could not write the profile: it gave up after %" PRIu64
			 " bytes (%s)",
			 size, c->err > 0 && c->err < 4096 ? strerror(c->err) : "no cause known");
}

/*
 * Before 5.3 a jemalloc that cannot read its mappings calls the dump failed when all stacks are
 * written: it opens nothing else after the file itself, and no write has that error.
 */
static bool lacks_only_maps(const struct call *c, const char *text, size_t len)
{
	return (int)c->ret == EFAULT && c->err == ENOENT && len && text[len - 1] == '\n';
}

static int add_maps(const struct process *p, uint64_t fn, char **text, size_t *len, struct diag *d)
{
	char *maps;
	size_t n;
	int rc;

	if (dump_maps_have(*text, *len, fn))
		return 0;
	rc = proc_read(p->t.procfd, "maps", MAPS_MAX, &maps, &n);
	if (rc)
		return target_unreadable(&p->t, "/maps", rc, d);
	rc = dump_maps_put(text, len, maps);
	free(maps);
	return rc ? diag_internal(d, rc, "the mappings of the profile") : 0;
}

/* What the call has left in the file: checked, with the mappings. */
static int take_dump(const struct process *p, const struct allocator *a, const struct call *c,
		     const struct limits *limits, int fd, char **text, size_t *len, struct diag *d)
{
	int rc = 0;

	if (fd >= 0)
		rc = read_file(fd, text, len, d);
	if (rc)
		return rc;
	if (((int)c->ret && !lacks_only_maps(c, *text, *len)) || *len >= limits->fsize ||
	    *len < sizeof(magic) - 1 || memcmp(*text, magic, sizeof(magic) - 1) != 0)
		return dump_failed(p, a, c, limits, *len, d);
	return add_maps(p, c->fn, text, len, d);
}

static int make_dump(struct process *p, const struct limits *limits, uint64_t fn, struct call c[2],
		     int *fd, struct diag *d)
{
	bool direct = !session_is_proxy(p->session);
	bool limited = direct && limits->fsize != LIMIT_NONE;
	char *path;
	int rc = prepare_dump(p->session, fn, &path, &c[0]);

	if (rc)
		return diag_internal(d, rc, "the dump");
	if (limited)
		rc = prepare_signal(p, &c[1], d);
	return rc ? rc : process_calls_file(p, c, limited ? 2 : 1, path, fd, d);
}

int jemalloc_prof_dump(struct process *p, const struct allocator *a, char **text, size_t *len,
		       uint64_t *ns, struct diag *d)
{
	struct limits limits = { 0 };
	struct call c[2] = { 0 };
	uint64_t fn = 0;
	int fd = -1;
	int rc = jemalloc_symbol(a, "mallctl", &fn, d);

	*text = NULL;
	*len = 0;
	if (rc == 0)
		rc = check_room(p, &limits, d);
	if (rc == 0)
		rc = process_session(p, d);
	if (rc)
		return rc;
	rc = make_dump(p, &limits, fn, c, &fd, d);
	if (rc == 0)
		rc = take_dump(p, a, &c[0], &limits, fd, text, len, d);
	if (fd >= 0)
		close(fd);
	if (p->session)
		session_scratch_reset(p->session);
	if (rc) {
		free(*text);
		*text = NULL;
		return rc;
	}
	*ns = c[0].ns;
	return 0;
}
