// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * bench HEAPMEDIC VICTIMS OUT.json: how fast heapmedic reads large processes, and what that costs
 * itself and them. One table on stdout; the same with all samples in OUT.json. The commands take
 * turns, so that a slow moment of the machine meets all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB	   1048576ull
#define GB	   1e9
#define ROUNDS	   3
#define READY_MS   240000
#define MEMORY_MIB 64 /* more of our own is a figure that is not reached */
#define LINE	   512

/* Their numbers are MiB, threads or mappings; 0: as many MiB as fit, see largest(). */
static const struct scene {
	const char *shape;
	unsigned number;
	bool heap;   /* large: a rate is worth something */
	double most; /* seconds that a command may take, 0: no figure */
} scenes[] = {
	{ "ordered", 0, true, 0 },	 { "shuffled", 4096, true, 0 },
	{ "live", 4096, true, 0 },	 { "cached", 4096, true, 0 },
	{ "spread", 4096, true, 0 },	 { "arenas", 1000, false, 0 },
	{ "mappings", 50000, false, 1 },
};

static const struct command {
	const char *name;
	const char *argv[4];
	bool whole; /* reads the heap as a whole */
} commands[] = {
	{ "arenas", { "arenas" }, true },
	{ "diagnose", { "diagnose", "--passive" }, true },
	{ "trim --dry-run", { "trim", "--dry-run" }, true },
	{ "check", { "check" }, false },
	{ "maps", { "maps" }, false },
	{ "threads", { "threads" }, false },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char *heapmedic, *victims;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list ap;

	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The number behind key at the start of a line of a file, -1 without one. */
static long long number_of(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[LINE];
	long long v = -1;

	while (f && v < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			v = strtoll(line + strlen(key) + strspn(line + strlen(key), ": \t"), NULL,
				    10);
	if (f)
		fclose(f);
	return v;
}

/* 10 GiB, or half of what is there. */
static unsigned largest(void)
{
	long long mib = number_of("/proc/meminfo", "MemAvailable") / 1024 / 2;

	return mib > 10240 ? 10240 : (unsigned)mib;
}

/* ---- processes */

struct victim {
	pid_t pid;
	int in; /* it ends when this is closed */
};

static void victim_start(struct victim *v, const struct scene *s, unsigned number)
{
	char path[LINE], count[16], said[8] = "";
	struct pollfd p = { .events = POLLIN };
	int in[2], out[2];

	snprintf(path, sizeof(path), "%s/vast", victims);
	snprintf(count, sizeof(count), "%u", number);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		fail("pipe: %s", strerror(errno));
	v->pid = fork();
	if (v->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1)
			execl(path, "vast", s->shape, count, (char *)NULL);
		_exit(126);
	}
	close(in[0]);
	close(out[1]);
	v->in = in[1];
	p.fd = out[0];
	if (v->pid < 0 || poll(&p, 1, READY_MS) <= 0 || read(out[0], said, 6) != 6 ||
	    strcmp(said, "ready\n") != 0)
		fail("%s %s %s did not start", path, s->shape, count);
	close(out[0]);
}

static void victim_end(struct victim *v)
{
	int status;

	close(v->in);
	if (waitpid(v->pid, &status, 0) != v->pid || status)
		fail("the victim ended with %d", status);
}

/* What one run cost us. */
struct sample {
	double seconds, cpu, peak_mib;
};

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Runs it; what it says goes to *text (which the caller frees) where that is not NULL. */
static struct sample run(pid_t pid, const char *const *argv, char **text)
{
	const char *args[10] = { "heapmedic", "-p" };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), out = null, status = 0;
	FILE *f = text ? tmpfile() : NULL;
	uint64_t start = now_ns();
	struct rusage ru;
	char number[16];
	size_t n = 3;
	pid_t child;

	snprintf(number, sizeof(number), "%d", (int)pid);
	args[2] = number;
	if (f) {
		args[n++] = "--json";
		out = fileno(f);
	}
	for (size_t i = 0; argv[i]; i++)
		args[n++] = argv[i];
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(null, 0) == 0 && dup2(out, 1) == 1)
			execv(heapmedic, (char *const *)args);
		_exit(126);
	}
	if (null < 0 || child < 0 || wait4(child, &status, 0, &ru) != child || status)
		fail("%s %s ended with %d", heapmedic, argv[0], status);
	close(null);
	if (f) {
		*text = calloc(1, MIB * 16);
		rewind(f);
		if (!*text || fread(*text, 1, MIB * 16 - 1, f) == 0)
			fail("%s %s said nothing", heapmedic, argv[0]);
		fclose(f);
	}
	return (struct sample){ (double)(now_ns() - start) / 1e9,
				seconds_of(&ru.ru_utime) + seconds_of(&ru.ru_stime),
				(double)ru.ru_maxrss / 1024 };
}

static double heap_bytes(pid_t pid)
{
	static const char *const argv[] = { "arenas", NULL };
	json_t *o, *total;
	double v;
	char *text;

	run(pid, argv, &text);
	o = json_loads(text, 0, NULL);
	total = json_object_get(json_object_get(o, "result"), "total");
	v = json_number_value(json_object_get(total, "system"));
	json_decref(o);
	free(text);
	return v;
}

/* ---- what the target pays */

struct cost {
	long long tables_kib, rss_kib, faults;
};

static long long faults_of(pid_t pid)
{
	char path[64], line[LINE] = "", *p;
	long long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && (p = strrchr(line, ')')) &&
	    sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %lld", &v) != 1)
		v = -1;
	if (f)
		fclose(f);
	return v;
}

static struct cost cost_of(pid_t pid)
{
	char status[64], rollup[64];

	snprintf(status, sizeof(status), "/proc/%d/status", (int)pid);
	snprintf(rollup, sizeof(rollup), "/proc/%d/smaps_rollup", (int)pid);
	return (struct cost){ number_of(status, "VmPTE"), number_of(rollup, "Rss"),
			      faults_of(pid) };
}

/* ---- figures */

struct row {
	const struct scene *scene;
	const struct command *command;
	double bytes;
	struct sample sample[ROUNDS];
	struct cost more; /* of all its runs */
};

static double field(const struct sample *s, size_t off)
{
	double v;

	memcpy(&v, (const char *)s + off, sizeof(v));
	return v;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static void sorted(const struct row *r, size_t off, double v[ROUNDS])
{
	for (size_t i = 0; i < ROUNDS; i++)
		v[i] = field(&r->sample[i], off);
	qsort(v, ROUNDS, sizeof(*v), by_value);
}

static double rate_of(const struct row *r)
{
	double t[ROUNDS];

	sorted(r, offsetof(struct sample, seconds), t);
	return r->scene->heap && r->command->whole ? r->bytes / t[ROUNDS / 2] / GB : 0;
}

/* What is not as it should be, in a few words; "" if all is. */
static const char *judge(const struct row *r, char *text, size_t size)
{
	double t[ROUNDS], mib[ROUNDS], rate = rate_of(r);

	sorted(r, offsetof(struct sample, seconds), t);
	sorted(r, offsetof(struct sample, peak_mib), mib);
	snprintf(text, size, "%s%s%s%s", rate > 0 && rate < 1 ? " slow" : "",
		 r->scene->most > 0 && t[ROUNDS / 2] > r->scene->most ? " slow" : "",
		 mib[ROUNDS - 1] > MEMORY_MIB ? " memory" : "",
		 r->more.tables_kib || r->more.rss_kib || r->more.faults ? " touched" : "");
	return text;
}

static void show_header(void)
{
	printf("%-16s %8s  %-14s %9s %19s %8s %9s %9s %8s %8s\n", "VICTIM", "HEAP", "COMMAND",
	       "TIME", "MIN..MAX", "CPU", "RATE", "OUR PEAK", "TABLES", "RSS");
}

static void show(const struct row *r, unsigned number)
{
	double t[ROUNDS], cpu[ROUNDS], mib[ROUNDS];
	char name[32], rate[16] = "", verdict[64];

	sorted(r, offsetof(struct sample, seconds), t);
	sorted(r, offsetof(struct sample, cpu), cpu);
	sorted(r, offsetof(struct sample, peak_mib), mib);
	snprintf(name, sizeof(name), "%s %u", r->scene->shape, number);
	if (rate_of(r) > 0)
		snprintf(rate, sizeof(rate), "%.1f GB/s", rate_of(r));
	printf("%-16s %6.1f G  %-14s %6.1f ms %8.1f..%-8.1f %6.1f ms %9s %5.1f MiB %+4lld KiB "
	       "%+4lld KiB%s\n",
	       name, r->bytes / GB, r->command->name, t[ROUNDS / 2] * 1e3, t[0] * 1e3,
	       t[ROUNDS - 1] * 1e3, cpu[ROUNDS / 2] * 1e3, rate, mib[ROUNDS - 1],
	       r->more.tables_kib, r->more.rss_kib, judge(r, verdict, sizeof(verdict)));
	fflush(stdout);
}

static json_t *samples(const struct row *r, size_t off)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ROUNDS; i++)
		json_array_append_new(list, json_real(field(&r->sample[i], off)));
	return list;
}

static json_t *json_of(const struct row *r, unsigned number)
{
	char verdict[64];

	return json_pack("{s:s, s:i, s:s, s:I, s:f, s:o, s:o, s:o, s:I, s:I, s:I, s:s}", "victim",
			 r->scene->shape, "number", (int)number, "command", r->command->name,
			 "heap_bytes", (json_int_t)r->bytes, "gb_per_s", rate_of(r), "seconds",
			 samples(r, offsetof(struct sample, seconds)), "cpu_seconds",
			 samples(r, offsetof(struct sample, cpu)), "peak_mib",
			 samples(r, offsetof(struct sample, peak_mib)), "target_tables_kib",
			 (json_int_t)r->more.tables_kib, "target_rss_kib",
			 (json_int_t)r->more.rss_kib, "target_faults", (json_int_t)r->more.faults,
			 "missed", judge(r, verdict, sizeof(verdict)));
}

static json_t *machine(void)
{
	struct utsname u;

	uname(&u);
	return json_pack("{s:I, s:I, s:s}", "cpus", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
			 "memory_kib", (json_int_t)number_of("/proc/meminfo", "MemTotal"), "kernel",
			 u.release);
}

/* ---- measuring */

static void measure(const struct scene *s, json_t *rows)
{
	struct row row[COMMANDS] = { 0 };
	unsigned number = s->number ? s->number : largest();
	struct victim v;
	double bytes;

	victim_start(&v, s, number);
	bytes = heap_bytes(v.pid);
	for (size_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < COMMANDS; i++) {
			struct cost before = cost_of(v.pid), after;

			row[i].sample[round] = run(v.pid, commands[i].argv, NULL);
			after = cost_of(v.pid);
			row[i].more.tables_kib += after.tables_kib - before.tables_kib;
			row[i].more.rss_kib += after.rss_kib - before.rss_kib;
			row[i].more.faults += after.faults - before.faults;
		}
	victim_end(&v);
	for (size_t i = 0; i < COMMANDS; i++) {
		row[i].scene = s;
		row[i].command = &commands[i];
		row[i].bytes = bytes;
		show(&row[i], number);
		json_array_append_new(rows, json_of(&row[i], number));
	}
}

int main(int argc, char **argv)
{
	json_t *rows = json_array(), *all;

	if (argc < 4)
		fail("usage: bench HEAPMEDIC VICTIMS OUT.json [SHAPE...]");
	heapmedic = argv[1];
	victims = argv[2];
	show_header();
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		bool wanted = argc == 4;

		for (int k = 4; k < argc; k++)
			wanted |= !strcmp(argv[k], scenes[i].shape);
		if (wanted)
			measure(&scenes[i], rows);
	}
	all = json_pack("{s:s, s:o, s:o}", "schema", "heapmedic-bench/1", "machine", machine(),
			"rows", rows);
	if (!all || json_dump_file(all, argv[3], JSON_INDENT(1)))
		fail("%s cannot be written", argv[3]);
	json_decref(all);
	return 0;
}
