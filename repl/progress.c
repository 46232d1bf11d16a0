// SPDX-License-Identifier: GPL-3.0-or-later
#include "progress.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../inject/clock.h"

#define FIRST_MS 1000
#define EVERY_MS 250

/* The one line there is. shown is how long it is, 0: erased; under lock. */
static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	int stop; /* an eventfd, -1: none is begun */
	const char *command;
	uint64_t begun;
	size_t shown;
} line = { .lock = PTHREAD_MUTEX_INITIALIZER, .stop = -1 };

size_t progress_text(const char *command, const struct phase *p, uint64_t seconds, unsigned columns,
		     char *buf, size_t size)
{
	char far[64] = "";
	int n;

	if (p->what && p->total)
		snprintf(far, sizeof(far), ", %" PRIu64 " of %" PRIu64, p->done, p->total);
	else if (p->what && p->done)
		snprintf(far, sizeof(far), ", %" PRIu64, p->done);
	n = snprintf(buf, size, "%s%s%s%s, %" PRIu64 " s", command, p->what ? ": " : "",
		     p->what ? p->what : "", far, seconds);
	if (n < 0)
		return 0;
	if ((size_t)n >= size)
		n = (int)size - 1;
	if (columns && (unsigned)n >= columns)
		n = (int)columns - 1;
	buf[n] = '\0';
	return (size_t)n;
}

static void put(const char *text, size_t len)
{
	/* nothing is lost where it cannot be shown */
	(void)!write(STDERR_FILENO, text, len);
}

/* Blanks, not an escape sequence: any terminal can do that. */
static void erase(void)
{
	char blanks[256];
	size_t n = line.shown < sizeof(blanks) - 2 ? line.shown : sizeof(blanks) - 2;

	if (!n)
		return;
	memset(blanks, ' ', sizeof(blanks));
	blanks[0] = '\r';
	blanks[n + 1] = '\r';
	put(blanks, n + 2);
	line.shown = 0;
}

static void draw(void)
{
	struct phase p = phase_read();
	struct winsize w = { 0 };
	char text[200];
	size_t n;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w))
		w.ws_col = 0;
	erase();
	n = progress_text(line.command, &p, (clock_now() - line.begun) / NS_PER_SEC, w.ws_col, text,
			  sizeof(text));
	put(text, n);
	line.shown = n;
}

static void *show(void *unused)
{
	struct pollfd p = { .fd = line.stop, .events = POLLIN };
	int wait = FIRST_MS;

	(void)unused;
	while (poll(&p, 1, wait) == 0) {
		pthread_mutex_lock(&line.lock);
		draw();
		pthread_mutex_unlock(&line.lock);
		wait = EVERY_MS;
	}
	progress_hide();
	return NULL;
}

void progress_begin(const char *command)
{
	sigset_t all, before;
	int err;

	phase_end();
	if (line.stop >= 0 || !isatty(STDERR_FILENO))
		return;
	line.stop = eventfd(0, EFD_CLOEXEC);
	if (line.stop < 0)
		return;
	line.command = command;
	line.begun = clock_now();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&line.thread, NULL, show, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		return;
	close(line.stop);
	line.stop = -1;
}

void progress_hide(void)
{
	pthread_mutex_lock(&line.lock);
	erase();
	pthread_mutex_unlock(&line.lock);
}

void progress_end(void)
{
	if (line.stop < 0)
		return;
	if (eventfd_write(line.stop, 1) == 0)
		pthread_join(line.thread, NULL);
	close(line.stop);
	line.stop = -1;
}
