// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Runtimes under load: virtual machines, collectors and schedulers that use signals, threads and
 * memory in their own way. Each checks its results and its clocks by itself, and says what is
 * wrong.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "subject.h"
#include "torture.h"

#define LONG_ENOUGH 3600

static void needs(const char *program, const char *package)
{
	char line[256];

	snprintf(line, sizeof(line), "command -v %s >/dev/null 2>&1", program);
	if (system(line) != 0)
		cr_skip_test("%s is missing: install %s", program, package);
}

static void sessions_with(const char *name, const struct victim_plan *plan,
			  enum state_freedom freedom, unsigned n)
{
	static struct subject s;

	memset(&s, 0, sizeof(s));
	s.name = name;
	s.commands = subject_glibc;
	s.freedom = freedom;
	victim_start(&s.v, plan);
	subject_begin(&s);
	for (unsigned i = 0; i < n; i++) {
		subject_session(&s);
		victim_check(&s.v);
	}
	subject_end(&s);
	victim_stop(&s.v);
	torture_figure("%s: %u sessions, %u refused (exit 6), the longest run %.0f ms (%s)", name,
		       s.sessions, s.refused, (double)s.longest_ns / 1e6, s.longest);
}

/* Each collector stops the threads and moves the heap in another way; briefly only G1. */
Test(programs, java, .timeout = LONG_ENOUGH)
{
	static const char *const collectors[] = { "G1", "Serial", "Parallel" };

	needs("java", "default-jdk-headless");
	for (size_t i = 0; i < torture_rounds(3, 1); i++) {
		char dir[4096], use[64], name[64];
		struct victim_plan plan = { .argv = { "java", "-Xmx64m", use, "-cp", dir,
						      "JvmLoad" } };

		snprintf(dir, sizeof(dir), "%s", victim_path(""));
		snprintf(use, sizeof(use), "-XX:+Use%sGC", collectors[i]);
		snprintf(name, sizeof(name), "java, %s collector", collectors[i]);
		sessions_with(name, &plan, STATE_THREADS_VARY, torture_rounds(170, 10));
	}
}

Test(programs, go_with_cgo, .timeout = LONG_ENOUGH)
{
	const struct victim_plan plan = { .argv = { "@goload" } };

	sessions_with("go with cgo", &plan, STATE_THREADS_VARY, torture_rounds(500, 12));
}

Test(programs, python_with_threads, .timeout = LONG_ENOUGH)
{
	const struct victim_plan plan = { .argv = { "python3", "@pyload.py" } };

	sessions_with("python", &plan, STATE_EXACT, torture_rounds(500, 12));
}

Test(programs, node, .timeout = LONG_ENOUGH)
{
	char socket[64];
	const struct victim_plan plan = { .argv = { "node", "@nodeload.js", socket } };

	needs("node", "nodejs");
	snprintf(socket, sizeof(socket), "/tmp/heapmedic-node-%d", getpid());
	sessions_with("node", &plan, STATE_THREADS_VARY, torture_rounds(500, 10));
	unlink(socket);
}
