// SPDX-License-Identifier: GPL-3.0-or-later
#include "toolchain.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"

char *tool_dir(void)
{
	char *dir = strdup("/tmp/hm-test-XXXXXX");

	cr_assert(dir && mkdtemp(dir), "no temporary directory");
	return dir;
}

bool tool_run(const char *dir, const char *fmt, ...)
{
	char cmd[4096], full[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	/* a sanitizer's settings are not for the tools */
	snprintf(full, sizeof(full), "cd '%s' && unset LD_PRELOAD && { %s; }", dir, cmd);
	return system(full) == 0;
}

void tool_clean(char *dir)
{
	tool_run("/", "rm -rf '%s'", dir);
	free(dir);
}

char *tool_path(const char *dir, const char *name)
{
	char *path;

	cr_assert_geq(asprintf(&path, "%s/%s", dir, name), 0);
	return path;
}

void tool_write(const char *dir, const char *name, const char *text)
{
	char *path = tool_path(dir, name);
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f), "cannot write %s", path);
	free(path);
}

void tool_build(const char *dir, const char *name, const char *source, const char *flags)
{
	char file[256];

	snprintf(file, sizeof(file), "%s.c", name);
	tool_write(dir, file, source);
	cr_assert(tool_run(dir, "cc -w -D_GNU_SOURCE -o '%s' '%s' %s", name, file, flags),
		  "cc failed for %s with %s", name, flags);
}

struct start {
	char *path;
	const char *preload;
};

static void run_program(void *arg)
{
	struct start *s = arg;
	char *argv[] = { s->path, NULL };

	unsetenv("LD_PRELOAD");
	if (s->preload)
		setenv("LD_PRELOAD", s->preload, 1);
	execv(s->path, argv);
	_exit(127);
}

pid_t tool_start(const char *dir, const char *name, const char *preload)
{
	struct start s = { .path = tool_path(dir, name), .preload = preload };
	pid_t pid = child_start(run_program, &s);

	cr_assert(child_reach_call(pid, pid, SYS_pause), "%s does not get to pause(2)", s.path);
	free(s.path);
	return pid;
}
