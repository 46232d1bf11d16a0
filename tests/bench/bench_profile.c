// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * bench_profile HEAPMEDIC DIR OUT.json [SHAPE...]: a heap profile of 20,000 stacks of a large
 * program with debug info, which is made in DIR, looked at by heapmedic and by jeprof. One line per
 * program on stdout, all samples in OUT.json. With SHAPEs, it is run only if "profile" is one of
 * them. "check": it fails where heapmedic is not LEAST times as fast; that compares two programs in
 * one run, so a busy machine, which slows both down, does not decide.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACKS 20000
#define SITES  60000 /* addresses that the stacks are made of */
#define DEPTH  12    /* to three times of it */
#define FILES  64    /* of the source */
#define FUNCS  600   /* in each */
#define TYPES  10000 /* in each: most of the debug info of a large program is about types */
#define ROUNDS 3
#define LEAST  20 /* times as fast as jeprof */
#define PATH   512
#define BASE   0x555500000000ull

static uint64_t state = 88172645463325252ull;

static uint64_t chance(uint64_t below)
{
	state ^= state << 13; /* xorshift64 */
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *fmt, ...)
{
	va_list ap;

	fputs("bench_profile: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static FILE *create(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		fail("%s: %s", path, strerror(errno));
	return f;
}

static void finish(FILE *f, const char *path)
{
	if (ferror(f) | fclose(f))
		fail("%s cannot be written", path);
}

/* ---- the program */

static void write_types(FILE *f, unsigned file)
{
	for (unsigned i = 0; i < TYPES; i++) {
		fprintf(f, "struct a_type_with_a_long_name_%u_%u {\n", file, i);
		for (unsigned k = 0; k < 9; k++)
			fprintf(f, "\tlong member%u;\n", (i + k) % 1000);
		if (i)
			fprintf(f, "\tstruct a_type_with_a_long_name_%u_%u *other;\n", file, i - 1);
		fputs("};\n", f);
	}
}

static void write_source(const char *path, unsigned file)
{
	FILE *f = create(path);

	write_types(f, file);
	fputs("struct s { struct s *next; long a, b; char name[40]; };\n", f);
	for (unsigned i = 0; i < FUNCS; i++) {
		fprintf(f,
			"long a_function_of_a_large_program_%u_with_a_long_name_%u(struct s *p, "
			"long x)\n{\n\tlong first = x * %u, second = 0, third[4] = { x };\n\n",
			file, i, i);
		for (unsigned k = 0; k < 12; k++)
			fprintf(f,
				"\tif (p && p->a > %u)\n\t\tsecond += p->b * %u + third[%u] - "
				"first;\n\telse\n\t\tthird[%u] ^= second + %u;\n",
				k, i + k, k % 4, (k + 1) % 4, k * 7);
		fputs("\treturn first + second + third[1];\n}\n\n", f);
	}
	if (!file)
		fputs("int main(void)\n{\n\treturn 0;\n}\n", f);
	finish(f, path);
}

static void shell(const char *command)
{
	int status = system(command);

	if (status)
		fail("%s: %d", command, status);
}

static void make_program(const char *dir, const char *path)
{
	char source[PATH], command[PATH * 3];
	struct stat st;

	if (stat(path, &st) == 0)
		return;
	fprintf(stderr, "bench_profile: a large program is compiled in %s: a minute or two\n", dir);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(source, sizeof(source), "%s/large%u.c", dir, i);
		write_source(source, i);
	}
	snprintf(command, sizeof(command),
		 "cd '%s' && ls large*.c | xargs -P 2 -n 4 gcc -g -O0 "
		 "-fno-eliminate-unused-debug-types -c && "
		 "gcc -o large.tmp large*.o && rm -f large*.c large*.o && mv large.tmp '%s'",
		 dir, path);
	shell(command);
}

/* ---- the profile */

static void find_text(const char *path, uint64_t *offset, uint64_t *size)
{
	unsigned char head[8192] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr e;

	if (fd < 0 || pread(fd, head, sizeof(head), 0) < (ssize_t)sizeof(e))
		fail("%s cannot be read", path);
	close(fd);
	memcpy(&e, head, sizeof(e));
	for (unsigned i = 0; i < e.e_phnum; i++) {
		size_t at = e.e_phoff + (size_t)i * e.e_phentsize;
		Elf64_Phdr p;

		if (at + sizeof(p) > sizeof(head))
			break;
		memcpy(&p, head + at, sizeof(p));
		if (p.p_type == PT_LOAD && (p.p_flags & PF_X)) {
			*offset = p.p_offset;
			*size = p.p_filesz;
			return;
		}
	}
	fail("%s has no code", path);
}

static void make_profile(const char *program, const char *path)
{
	static uint64_t site[SITES];
	uint64_t offset, size, bytes, n, end;
	FILE *f = create(path);

	find_text(program, &offset, &size);
	for (size_t i = 0; i < SITES; i++)
		site[i] = BASE + offset + 0x1000 + chance(size - 0x3000);
	fputs("heap_v2/524288\n  t*: 1: 1 [0: 0]\n", f);
	for (size_t i = 0; i < STACKS; i++) {
		size_t depth = DEPTH + chance(DEPTH * 2);

		putc('@', f);
		for (size_t k = 0; k < depth; k++)
			fprintf(f, " 0x%llx",
				(unsigned long long)site[chance(k < 3 ? SITES : SITES / 16)]);
		n = 1 + chance(40);
		bytes = n * (16 + chance(100000));
		fprintf(f, "\n  t*: %llu: %llu [0: 0]\n", (unsigned long long)n,
			(unsigned long long)bytes);
	}
	end = BASE + offset + ((size + 0xfff) & ~0xfffull);
	fprintf(f, "\nMAPPED_LIBRARIES:\n%llx-%llx r-xp %08llx 08:01 1234 %s\n",
		(unsigned long long)(BASE + offset), (unsigned long long)end,
		(unsigned long long)offset, program);
	finish(f, path);
}

/* ---- measuring */

struct sample {
	double seconds, cpu, peak_mib;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static struct sample run(const char *const *argv)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), status = 0;
	double start = now();
	struct rusage ru;
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2)
			execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(126);
	}
	if (null < 0 || child < 0 || wait4(child, &status, 0, &ru) != child || status)
		fail("%s ended with %d", argv[0], status);
	close(null);
	return (struct sample){ now() - start, seconds_of(&ru.ru_utime) + seconds_of(&ru.ru_stime),
				(double)ru.ru_maxrss / 1024 };
}

static void show(const char *name, const struct sample *s)
{
	printf("%-16s %8d stacks  %-14s %9.1f ms %19s %8.1f ms %9s %6.1f MiB\n", "profile", STACKS,
	       name, s->seconds * 1e3, "", s->cpu * 1e3, "", s->peak_mib);
	fflush(stdout);
}

static json_t *json_of(const char *name, const struct sample *s)
{
	return json_pack("{s:s, s:f, s:f, s:f}", "command", name, "seconds", s->seconds,
			 "cpu_seconds", s->cpu, "peak_mib", s->peak_mib);
}

/* Returns how many times as fast heapmedic is. */
static double measure(const char *heapmedic, const char *program, const char *heap, const char *out)
{
	const char *const own[] = { heapmedic, "prof", "top", "--file", heap, NULL };
	const char *const jeprof[] = { "jeprof", "--text", program, heap, NULL };
	struct sample a = run(own), b;
	struct stat st;
	json_t *all;

	for (int i = 1; i < ROUNDS; i++) {
		struct sample s = run(own);

		if (s.seconds < a.seconds)
			a = s;
	}
	show("prof top", &a);
	b = run(jeprof);
	show("jeprof", &b);
	if (stat(program, &st))
		fail("%s: %s", program, strerror(errno));
	printf("%-16s %8.0f MB program, jeprof takes %.0f times as long%s\n", "",
	       (double)st.st_size / 1e6, b.seconds / a.seconds,
	       b.seconds < a.seconds * LEAST ? " slow" : "");
	all = json_pack("{s:s, s:i, s:f, s:[o, o]}", "schema", "heapmedic-bench-profile/1",
			"stacks", STACKS, "program_mb", (double)st.st_size / 1e6, "rows",
			json_of("prof top", &a), json_of("jeprof", &b));
	if (!all || json_dump_file(all, out, JSON_INDENT(1)))
		fail("%s cannot be written", out);
	json_decref(all);
	return b.seconds / a.seconds;
}

int main(int argc, char **argv)
{
	char program[PATH], heap[PATH];
	bool wanted = argc == 4, check = false;
	double times;

	if (argc < 4)
		fail("usage: bench_profile HEAPMEDIC DIR OUT.json [SHAPE...]");
	for (int i = 4; i < argc; i++) {
		wanted |= strcmp(argv[i], "profile") == 0;
		check |= strcmp(argv[i], "check") == 0;
	}
	if (!wanted)
		return 0;
	if (mkdir(argv[2], 0755) && errno != EEXIST)
		fail("%s: %s", argv[2], strerror(errno));
	snprintf(program, sizeof(program), "%s/large", argv[2]);
	snprintf(heap, sizeof(heap), "%s/large.heap", argv[2]);
	make_program(argv[2], program);
	make_profile(program, heap);
	times = measure(argv[1], program, heap, argv[3]);
	if (check && times < LEAST)
		fail("prof top is %.1f times as fast as jeprof, and not %d times", times, LEAST);
	return 0;
}
