// SPDX-License-Identifier: GPL-3.0-or-later
#include "audit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syslog.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sink.h"

struct audit {
	int fd;
	bool syslog;
	char *spec; /* for messages */
	uid_t uid;
	char user[64];
};

static int audit_failed(struct audit *a, int err, const char *what, struct diag *d)
{
	return diag_fail(d, err, HM_CALL_FAILED, "audit-failed",
			 "repair the audit log or run without --audit; nothing was changed",
			 "cannot %s the audit log %s: %s", what, a->spec, strerror(-err));
}

/*
 * The login uid survives sudo(8) and su(1) (audit(7)); 4294967295 says that there is none. Read
 * without NSS, so that the static program can do it too.
 */
static uid_t who(void)
{
	FILE *f = fopen("/proc/self/loginuid", "re");
	unsigned long uid = (unsigned long)(uid_t)-1;

	if (f) {
		if (fscanf(f, "%lu", &uid) != 1)
			uid = (unsigned long)(uid_t)-1;
		fclose(f);
	}
	return uid == (unsigned long)(uid_t)-1 ? getuid() : (uid_t)uid;
}

static void user_name(uid_t uid, char *buf, size_t size)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	buf[0] = '\0';
	if (!f)
		return;
	while ((pw = fgetpwent(f)) != NULL)
		if (pw->pw_uid == uid) {
			snprintf(buf, size, "%s", pw->pw_name);
			break;
		}
	fclose(f);
}

/* syslog(3) cannot say that nobody listens; the socket can. */
static int open_syslog(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* That a file is there is on the disk only when its directory is (fsync(2)). Who may not read the
 * directory, or has a file system that cannot do it, has the rest all the same. */
static int sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int err = 0;

	free(dir);
	if (fd < 0)
		return 0;
	if (fsync(fd) && errno != EINVAL && errno != EROFS)
		err = -errno;
	close(fd);
	return err;
}

static int open_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		      0600);
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (!err && st.st_size == 0)
		err = sync_directory(path);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int audit_open(const char *spec, struct audit **out, struct diag *d)
{
	struct audit *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return diag_internal(d, -ENOMEM, "audit");
	a->spec = strdup(spec);
	if (!a->spec) {
		free(a);
		return diag_internal(d, -ENOMEM, "audit");
	}
	a->uid = who();
	user_name(a->uid, a->user, sizeof(a->user));
	a->syslog = strcmp(spec, "syslog") == 0;
	a->fd = a->syslog ? open_syslog() : open_file(spec);
	if (a->fd < 0) {
		err = audit_failed(a, a->fd, "open", d);
		audit_close(a);
		return err;
	}
	*out = a;
	return 0;
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	if (a->fd >= 0)
		close(a->fd);
	free(a->spec);
	free(a);
}

static json_t *words_json(char *const *argv)
{
	size_t len = 0, used = 0;
	char *line;
	json_t *out;

	for (size_t i = 0; argv[i]; i++)
		len += strlen(argv[i]) + 1;
	line = malloc(len + 1);
	if (!line)
		return NULL;
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			line[used++] = ' ';
		memcpy(line + used, argv[i], strlen(argv[i]));
		used += strlen(argv[i]);
	}
	out = json_text(line, used);
	free(line);
	return out;
}

static json_t *record_json(const struct audit *a, const struct audit_record *r)
{
	struct timespec now;
	json_t *o = json_object();

	clock_gettime(CLOCK_REALTIME, &now);
	if (json_object_set_new(o, "time", json_time(&now)) ||
	    json_object_set_new(o, "uid", json_integer(a->uid)) ||
	    json_object_set_new(o, "user", json_text(a->user, strlen(a->user))) ||
	    json_object_set_new(o, "pid", json_integer(r->t->pid)) ||
	    json_object_set_new(o, "start_time", json_u64(r->t->start_time)) ||
	    json_object_set_new(o, "comm", json_text(r->t->comm, strlen(r->t->comm))) ||
	    json_object_set_new(o, "command", words_json(r->argv)) ||
	    json_object_set_new(o, "phase", json_string(r->phase)) ||
	    json_object_set_new(o, "result", json_string(r->result))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* In one write: O_APPEND keeps the lines of several writers apart. */
static int write_line(struct audit *a, const char *json)
{
	char *line = NULL;
	int len = a->syslog ? asprintf(&line, "<%d>heapmedic[%d]: %s", LOG_AUTHPRIV | LOG_NOTICE,
				       (int)getpid(), json)
			    : asprintf(&line, "%s\n", json);
	ssize_t n;
	int err = 0;

	if (len < 0)
		return -ENOMEM;
	do
		n = write(a->fd, line, (size_t)len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		err = -errno;
	else if (n != len)
		err = -ENOSPC;
	else if (!a->syslog && fsync(a->fd))
		err = -errno;
	free(line);
	return err;
}

int audit_write(struct audit *a, const struct audit_record *r, struct diag *d)
{
	json_t *o;
	char *text;
	int err;

	if (!a)
		return 0;
	o = record_json(a, r);
	text = json_line(o);
	json_decref(o);
	err = text ? write_line(a, text) : -ENOMEM;
	free(text);
	return err ? audit_failed(a, err, "write", d) : 0;
}
