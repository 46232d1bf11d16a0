// SPDX-License-Identifier: GPL-3.0-or-later
#include "guard_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD 64

static int lock_dir(char *buf, size_t size)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	int n;

	if (geteuid() == 0)
		n = snprintf(buf, size, "/run/heapmedic");
	else if (run && run[0] == '/')
		n = snprintf(buf, size, "%s/heapmedic", run);
	else
		n = snprintf(buf, size, "/tmp/heapmedic-%u", (unsigned)geteuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* In /tmp anybody could have made it: what is not ours alone is not used. */
static int open_dir(const char *path)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 022)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static void lock_name(const struct target *t, char *buf, size_t size)
{
	snprintf(buf, size, "%d-%" PRIu64, (int)t->pid, t->start_time);
}

/* "PID TIME": who holds it, and when the last action was. */
static void read_record(int fd, pid_t *holder, uint64_t *last)
{
	char text[RECORD + 1] = "";
	long pid = 0;

	*holder = 0;
	*last = 0;
	if (pread(fd, text, RECORD, 0) > 0 && sscanf(text, "%ld %" SCNu64, &pid, last) == 2)
		*holder = (pid_t)pid;
}

static int write_record(int fd, pid_t holder, uint64_t last)
{
	char text[RECORD];
	int n = snprintf(text, sizeof(text), "%d %" PRIu64 "\n", (int)holder, last);

	if (pwrite(fd, text, (size_t)n, 0) != n)
		return errno ? -errno : -EIO;
	return ftruncate(fd, n) ? -errno : 0;
}

static int no_place(const char *dir, int err, struct diag *d)
{
	return diag_fail(d, err, HM_CALL_FAILED, "no-lock",
			 "make it a directory that this user alone may write to",
			 "%.150s cannot be used to keep others from acting at the same time: %s",
			 dir, err == -EPERM ? "it is not this user's alone" : strerror(-err));
}

/*
 * Guards that end before their process does leave its file behind. One that is locked is in use,
 * whatever its name says: the process is of another pid namespace, where the directory is shared.
 */
static void sweep(int dir)
{
	DIR *list = fdopendir(dir);
	struct dirent *e;

	if (!list) {
		close(dir);
		return;
	}
	while ((e = readdir(list))) {
		char *end;
		long pid = strtol(e->d_name, &end, 10);
		int fd;

		if (pid <= 0 || pid > INT_MAX || *end != '-' || kill((pid_t)pid, 0) == 0 ||
		    errno != ESRCH)
			continue;
		fd = openat(dirfd(list), e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(list), e->d_name, 0);
		close(fd);
	}
	closedir(list);
}

int guard_lock_check(struct diag *d)
{
	char dir[200];
	int at, err = lock_dir(dir, sizeof(dir));

	if (err)
		return no_place("the runtime directory", err, d);
	at = open_dir(dir);
	if (at < 0)
		return no_place(dir, at, d);
	if (faccessat(at, ".", W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (err) {
		close(at);
		return no_place(dir, err, d);
	}
	sweep(at);
	return 0;
}

int guard_lock_take(const struct target *t, struct guard_lock *l, uint64_t *last, pid_t *holder,
		    struct diag *d)
{
	char dir[200], name[48];
	int at, err = lock_dir(dir, sizeof(dir));

	*holder = 0;
	*last = 0;
	l->fd = -1;
	if (err)
		return no_place("the runtime directory", err, d);
	at = open_dir(dir);
	if (at < 0)
		return no_place(dir, at, d);
	lock_name(t, name, sizeof(name));
	l->fd = openat(at, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	err = l->fd < 0 ? -errno : 0;
	close(at);
	if (!err && flock(l->fd, LOCK_EX | LOCK_NB))
		err = -errno;
	if (!err || err == -EWOULDBLOCK)
		read_record(l->fd, holder, last);
	if (!err)
		err = write_record(l->fd, getpid(), *last);
	if (!err)
		return 0;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	return err == -EWOULDBLOCK ? -EBUSY : no_place(dir, err, d);
}

void guard_lock_acts(const struct guard_lock *l, uint64_t now)
{
	/* what cannot be remembered makes the next cooldown shorter, no more */
	if (l->fd >= 0)
		(void)!write_record(l->fd, getpid(), now);
}

void guard_lock_end(struct guard_lock *l, uint64_t acted)
{
	pid_t holder;
	uint64_t last;

	if (l->fd < 0)
		return;
	read_record(l->fd, &holder, &last);
	(void)!write_record(l->fd, 0, acted ? acted : last);
	close(l->fd);
	l->fd = -1;
}

void guard_lock_forget(const struct target *t)
{
	char dir[200], name[48];
	int at;

	if (lock_dir(dir, sizeof(dir)))
		return;
	at = open_dir(dir);
	if (at < 0)
		return;
	lock_name(t, name, sizeof(name));
	unlinkat(at, name, 0);
	close(at);
}
