// SPDX-License-Identifier: GPL-3.0-or-later
/* The small text files of /proc and of cgroups, and a program's environment. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/environ.h"
#include "../../agent/memory_cgroup.h"
#include "../../inject/mounts.h"
#include "../../inject/slept.h"
#include "../../inject/status.h"
#include "../../inject/usage.h"
#include "../../repl/targets.h"
#include "fuzz.h"

const char fuzz_name[] = "procfs";

static void check_status(const char *text)
{
	struct proc_status st;

	if (status_parse(text, &st))
		return;
	FUZZ_CHECK(st.state && st.tgid > 0 && st.pid > 0 && st.ppid >= 0 && st.threads >= 0);
	FUZZ_CHECK(st.nspid_len <= sizeof(st.nspid) / sizeof(st.nspid[0]));
	FUZZ_CHECK(memchr(st.name, '\0', sizeof(st.name)) != NULL);
	fuzz_printable(st.name, strlen(st.name), "");
}

static void check_stat(const char *text)
{
	uint64_t start, faults;
	char state, comm[32];

	if (stat_parse(text, &state, &start, &faults) == 0)
		FUZZ_CHECK(state > ' ');
	if (stat_comm(text, comm, sizeof(comm)) == 0)
		fuzz_printable(comm, strlen(comm), "");
	stat_is_kthread(text);
	stat_is_exiting(text);
}

static void check_cgroup(const char *text, size_t size)
{
	const char *second = memchr(text, '\n', size);
	char group[PATH_MAX];

	second = second ? second + 1 : text;
	if (cgroup_normalise(second, text, group, sizeof(group)) == 0) {
		FUZZ_CHECK(group[0] == '/' && (!group[1] || group[strlen(group) - 1] != '/'));
		cgroup_matches(second, group);
	}
}

/* Where a cgroup of a process is: the text serves as both files. */
static void check_place(const char *text, const char *controller)
{
	struct cgroup_place p;
	size_t path, below;

	if (cgroup_parse_self(text, controller, &p)) {
		FUZZ_CHECK(!p.version);
		return;
	}
	FUZZ_CHECK(p.version == 1 || p.version == 2);
	if (cgroup_parse_mounts(text, controller, &p))
		return;
	path = strlen(p.path);
	below = strlen(p.below);
	FUZZ_CHECK(!below || p.below[0] == '/');
	FUZZ_CHECK(!strstr(p.below, "/.."));
	FUZZ_CHECK(below <= path && memcmp(p.path + path - below, p.below, below) == 0);
}

static void check_memory_cgroup(const char *text)
{
	struct mounts mounts;
	double some = 0, full = 0;
	uint64_t v;

	check_place(text, "memory");
	check_place(text, "pids");
	(void)!cgroup_parse_key(text, "inactive_file", &v);
	if (cgroup_parse_pressure(text, &some, &full) == 0)
		FUZZ_CHECK(some >= 0 && some <= 100 && full >= 0 && full <= 100);
	mounts_parse(text, &mounts);
	FUZZ_CHECK(mounts.n <= MOUNTS_MAX);
	mounts_in_memory(&mounts, 0, 30);
}

static void check_environ(char *text, size_t size)
{
	struct environ e = { .text = text, .len = size };
	const char *value = environ_get(&e, "GLIBC_TUNABLES");
	uint64_t v;
	bool tunable;
	int percent;

	if (arena_max_get(&e, &v, &tunable) == 0)
		FUZZ_CHECK(v > 0);
	FUZZ_CHECK(!value || (value > text && value <= text + size));
	(void)!tunable_get(value ? value : text, "glibc.malloc.arena_max", &v);
	value = environ_get(&e, "GOGC");
	if (gogc_parse(value ? value : text, &percent) == 0)
		FUZZ_CHECK(percent >= -1);
	value = environ_get(&e, "GOMEMLIMIT");
	(void)!gomemlimit_parse(value ? value : text, &v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), small[7];
	uint64_t ns, switches;
	struct usage u;

	check_status(text);
	check_stat(text);
	check_cgroup(text, size);
	check_memory_cgroup(text);
	check_environ(text, size);
	if (usage_parse(text, &u) == 0)
		FUZZ_CHECK(u.rss % 1024 == 0 && u.swap % 1024 == 0);
	(void)!slept_parse(text, &ns, &switches);
	escape_copy(small, sizeof(small), text, size);
	fuzz_printable(small, strlen(small), "");
	free(text);
	return 0;
}
