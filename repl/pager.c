// SPDX-License-Identifier: GPL-3.0-or-later
#include "pager.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "../inject/clock.h"
#include "../inject/stray.h"
#include "nap.h"
#include "signals.h"

#define NAP_NS	  (500 * NS_PER_MS)
#define STRAY_NS  (20 * NS_PER_MS) /* how long a thread of the target waits for us at most */
#define NOT_FOUND 127		   /* as sh(1) and env(1) say it */

/* One character of text at *at, with where it leaves the column; rows are those that it began. */
static size_t step(const char *text, size_t len, size_t *at, size_t column, unsigned columns,
		   size_t *rows)
{
	unsigned char c = (unsigned char)text[(*at)++];
	const char *end;

	if (c == '\n')
		return 0;
	if (c == '\033' && *at < len && text[*at] == '[') {
		end = memchr(text + *at, 'm', len - *at);
		*at = end ? (size_t)(end - text) + 1 : len;
		return column;
	}
	if ((c & 0xc0) == 0x80) /* goes on in UTF-8 */
		return column;
	if (columns && column >= columns) {
		++*rows;
		column = 0;
	}
	return c == '\t' ? (column / 8 + 1) * 8 : column + 1;
}

size_t pager_part(const char *text, size_t len, unsigned columns, size_t max)
{
	size_t at = 0, column = 0, rows = 1, whole = 0;

	while (at < len) {
		bool ends = text[at] == '\n';

		column = step(text, len, &at, column, columns, &rows);
		if (rows > max)
			return whole ? whole : at - 1;
		if (!ends)
			continue;
		whole = at;
		rows++;
		if (rows > max)
			return whole;
	}
	return len;
}

size_t pager_rows(const char *text, size_t len, unsigned columns)
{
	size_t at = 0, column = 0, rows = 0;

	while (at < len) {
		size_t line = 1;

		while (at < len && text[at] != '\n')
			column = step(text, len, &at, column, columns, &line);
		at++;
		column = 0;
		rows += line;
	}
	return rows;
}

/* ---- another program */

/* Nothing is known of who may use sudo(8) for what: a pager would let them run anything. */
static bool is_confined(void)
{
	return getenv("SUDO_UID") != NULL;
}

static void become(int fd, const char *own)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (dup2(fd, STDIN_FILENO) < 0)
		_exit(NOT_FOUND);
	if (is_confined())
		setenv("LESSSECURE", "1", 1);
	if (own) {
		setenv("LESS", "FRX", 0); /* or colours are shown as their bytes */
		execlp("sh", "sh", "-c", own, (char *)NULL);
	} else {
		execlp("less", "less", "-FRXS", (char *)NULL);
	}
	_exit(NOT_FOUND);
}

/* Meanwhile a thread of the target that was stuck is looked after, and Ctrl-Z stops us too. */
static int wait_for(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG | WUNTRACED)) == 0 ||
	       (got == pid && WIFSTOPPED(status))) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		bool stuck = stray_collect() > 0;
		const struct timespec t = { .tv_nsec = (long)(stuck ? STRAY_NS : NAP_NS) };

		if (got == pid) {
			signals_stop_self();
			kill(pid, SIGCONT);
		}
		if (signals_leaving())
			kill(pid, SIGTERM);
		(void)ppoll(&p, 1, &t, NULL);
	}
	if (fd >= 0)
		close(fd);
	(void)signals_take_stop();
	signals_rearm();
	return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* The text is a file for it: nobody has to write while it reads. False: there is no such program.
 */
static bool run(const char *own, const char *text, size_t len)
{
	int fd = memfd_create("heapmedic", MFD_CLOEXEC);
	pid_t pid = -1;
	bool shown;

	if (fd >= 0 && write(fd, text, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0)
		pid = fork();
	if (pid == 0)
		become(fd, own);
	shown = pid > 0 && wait_for(pid) != NOT_FOUND;
	if (fd >= 0)
		close(fd);
	return shown;
}

/* ---- our own */

/* A key, or q where none comes: Ctrl-C, the end of the input, SIGTERM. */
static char key(void)
{
	char c;

	return nap_input(STDIN_FILENO) && read(STDIN_FILENO, &c, 1) == 1 ? c : 'q';
}

/* How many rows more are wanted; 0: none. */
static size_t ask(FILE *out, size_t left, size_t screen)
{
	char line[64], c;
	int n = snprintf(line, sizeof(line), "-- %zu more: space, Enter, q --", left);

	fputs(line, out);
	fflush(out);
	c = key();
	fprintf(out, "\r%*s\r", n, "");
	if (c == ' ' || c == 'f')
		return screen;
	return c == '\r' || c == '\n' || c == 'j' ? 1 : c == 'q' || c == 'Q' ? 0 : SIZE_MAX;
}

static void show_parts(FILE *out, const char *text, size_t len, const struct winsize *w)
{
	size_t screen = (size_t)w->ws_row - 1, rows = screen;

	while (len) {
		size_t n = pager_part(text, len, w->ws_col, rows), more;

		fwrite(text, 1, n, out);
		text += n;
		len -= n;
		if (!len)
			break;
		do
			more = ask(out, pager_rows(text, len, w->ws_col), screen);
		while (more == SIZE_MAX);
		if (!more)
			break;
		rows = more;
	}
	fflush(out);
}

static void page(FILE *out, const char *text, size_t len, const struct winsize *w)
{
	struct termios was, raw;

	if (tcgetattr(STDIN_FILENO, &was)) {
		fwrite(text, 1, len, out);
		return;
	}
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	show_parts(out, text, len, w);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &was);
	signals_rearm();
}

void pager_show(FILE *out, const char *text, size_t len)
{
	const char *own = is_confined() ? NULL : getenv("PAGER"), *term = getenv("TERM");
	bool none = own && (!*own || strcmp(own, "cat") == 0);
	/* where less can do no more than we, and asks whether it may */
	bool dumb = !term || !*term || strcmp(term, "dumb") == 0;
	struct winsize w;

	if (none || ioctl(fileno(out), TIOCGWINSZ, &w) || w.ws_row < 2 || !isatty(STDIN_FILENO) ||
	    pager_rows(text, len, w.ws_col) < w.ws_row) {
		fwrite(text, 1, len, out);
		return;
	}
	fflush(out);
	if ((!own && dumb) || !run(own, text, len))
		page(out, text, len, &w);
}
