// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * locks WORD... [eintr]: a process that is inside a lock of glibc at nearly every moment. Each word
 * starts threads: "alloc" four that allocate blocks of all sizes by every call there is and check
 * their contents (twice: eight), "fork" forks and lets the child look at its heap, its threads and
 * what it has inherited, "spawn" uses posix_spawn(3) and vfork(2), "dl" loads and unloads
 * libraries, "threads" starts and ends threads, "stdio" holds the lock of a FILE, "phdr" sleeps in
 * dl_iterate_phdr(3), "limits" changes a resource limit. Who makes no progress for long is
 * reported.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "victim.h"

enum { MOST = 32, SLOTS = 24, LONGEST_S = 60 };

struct worker {
	const char *word;
	void (*turn)(unsigned n);
	uint64_t seen; /* when its latest turn began */
};
static struct worker worker[MOST];
static int workers;
static size_t descriptors; /* of the process at its start: a child has no more */

/* ---- alloc */

struct block {
	unsigned char *p;
	size_t n;
	unsigned char byte;
};

static _Thread_local unsigned dice;

static unsigned roll(void)
{
	dice = dice * 1664525u + 1013904223u;
	return dice >> 8;
}

/* Mostly small, some for the big bins, a few with a mapping of their own. */
static size_t any_size(void)
{
	unsigned kind = roll() % 100;

	return 1 + (kind < 70 ? roll() % 1000 : kind < 95 ? roll() % 60000 : roll() % 400000);
}

static void check_block(const struct block *b)
{
	if (b->p && (b->p[0] != b->byte || b->p[b->n / 2] != b->byte || b->p[b->n - 1] != b->byte))
		wrong("a block of %zu bytes has changed", b->n);
}

static void fill_block(struct block *b, size_t n)
{
	if (!b->p)
		wrong("no memory for %zu bytes", n);
	b->n = n;
	b->byte = (unsigned char)roll();
	b->p[0] = b->p[n / 2] = b->p[n - 1] = b->byte;
}

static void new_block(struct block *b)
{
	size_t n = any_size(), align = (size_t)16 << roll() % 9;
	void *p = NULL;

	switch (roll() % 5) {
	case 0:
		b->p = calloc(1, n);
		if (b->p && (b->p[0] || b->p[n / 2] || b->p[n - 1]))
			wrong("calloc gave memory that is not zero");
		break;
	case 1:
		b->p = memalign(align, n);
		break;
	case 2:
		b->p = posix_memalign(&p, align, n) ? NULL : p;
		break;
	default:
		b->p = malloc(n);
		break;
	}
	fill_block(b, n);
}

static void alloc(unsigned n)
{
	static _Thread_local struct block block[SLOTS];

	if (!dice)
		dice = (unsigned)gettid();
	for (unsigned i = 0; i < 2000; i++) {
		struct block *b = &block[roll() % SLOTS];

		check_block(b);
		if (b->p && roll() % 4 == 0) {
			size_t to = any_size();

			b->p = realloc(b->p, to);
			if (b->p && b->p[0] != b->byte)
				wrong("realloc has lost the contents");
			fill_block(b, to);
			continue;
		}
		free(b->p);
		b->p = NULL;
		new_block(b);
	}
	if (n % 4 == 0)
		usleep(1000);
}

/* ---- what a child has */

static size_t count_names(const char *path, const char *part)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	size_t n = 0;

	if (!dir)
		wrong("%s: %s", path, strerror(errno));
	while ((e = readdir(dir))) {
		char at[300], link[300] = "";

		if (e->d_name[0] == '.')
			continue;
		snprintf(at, sizeof(at), "%s/%s", path, e->d_name);
		if (part && readlink(at, link, sizeof(link) - 1) > 0 && strstr(link, part))
			wrong("descriptor %s is %s", e->d_name, link);
		n++;
	}
	closedir(dir);
	return n;
}

/* The library's directory is open while it loads one, and so is ours: two more may be there. */
static void child(void)
{
	sigset_t set;

	for (int i = 0; i < 3; i++)
		alloc(1);
	if (count_names("/proc/self/task", NULL) != 1)
		wrong("a child has more than one thread");
	if (count_names("/proc/self/fd", "memfd:heapmedic") > descriptors + 4)
		wrong("a child has descriptors too many");
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	for (int sig = 1; sig < 65; sig++)
		if (sigismember(&set, sig))
			wrong("signal %d is blocked in a child", sig);
	_exit(0);
}

static void reap(pid_t pid, const char *what)
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		wrong("%s: the child ended with %#x (%s)", what, status, strerror(errno));
}

static void fork_one(unsigned n)
{
	pid_t pid = fork();

	(void)n;
	if (pid == 0)
		child();
	reap(pid, "fork");
	usleep(1000);
}

static void spawn_one(unsigned n)
{
	static char *const argv[] = { "true", NULL };
	pid_t pid;

	if (n % 2) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, NULL))
			wrong("posix_spawn: %s", strerror(errno));
	} else {
		pid = vfork();
		if (pid == 0) {
			usleep(3000);
			_exit(0);
		}
	}
	reap(pid, "spawn");
	usleep(1000);
}

/* ---- the others */

static void load_one(unsigned n)
{
	static const char *const name[] = { "libresolv.so.2", "libanl.so.1", "libutil.so.1",
					    "libBrokenLocale.so.1" };
	void *lib = dlopen(name[n % 4], n % 8 < 4 ? RTLD_NOW : RTLD_LAZY);

	if (!lib || dlclose(lib))
		wrong("%s", dlerror());
	usleep(200);
}

static void *end_soon(void *arg)
{
	free(malloc(1 + (size_t)(uintptr_t)arg % 5000));
	return arg;
}

static void start_threads(unsigned n)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, end_soon, (void *)(i + n)))
			wrong("no thread");
	for (uintptr_t i = 0; i < 4; i++) {
		void *end;

		if (pthread_join(t[i], &end) || end != (void *)(i + n))
			wrong("pthread_join");
	}
	usleep(500);
}

static void hold_file(unsigned n)
{
	static char buf[64];
	static FILE *f;

	if (!f)
		f = fopen("/dev/null", "w");
	if (!f)
		wrong("/dev/null: %s", strerror(errno));
	flockfile(f);
	fprintf(f, "%u\n", n);
	flockfile(stderr);
	usleep(20000);
	funlockfile(stderr);
	funlockfile(f);
	snprintf(buf, sizeof(buf), "%u", n);
}

static int sleep_in_callback(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	if (*(int *)data) {
		*(int *)data = 0;
		usleep(10000);
	}
	return 0;
}

static void iterate(unsigned n)
{
	int once = 1;

	(void)n;
	dl_iterate_phdr(sleep_in_callback, &once);
	/* its lock is not fair: who asks for it at once has it again */
	usleep(3000);
}

static void change_limit(unsigned n)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_CORE, &r))
		wrong("getrlimit: %s", strerror(errno));
	r.rlim_cur = n % 2 ? 0 : r.rlim_max < 4096 ? r.rlim_max : 4096;
	if (setrlimit(RLIMIT_CORE, &r))
		wrong("setrlimit: %s", strerror(errno));
	usleep(500);
}

static const struct {
	const char *word;
	void (*turn)(unsigned n);
	int threads;
} kind[] = {
	{ "alloc", alloc, 4 },	{ "fork", fork_one, 1 },	 { "spawn", spawn_one, 1 },
	{ "dl", load_one, 2 },	{ "threads", start_threads, 1 }, { "stdio", hold_file, 1 },
	{ "phdr", iterate, 1 }, { "limits", change_limit, 1 },
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned n = 0;; n++) {
		__atomic_store_n(&w->seen, now_ns(), __ATOMIC_SEQ_CST);
		w->turn(n);
		if (n == 0)
			thread_started();
	}
	return arg;
}

static void start_kind(const char *word)
{
	for (size_t k = 0; k < sizeof(kind) / sizeof(kind[0]); k++)
		for (int i = 0; i < kind[k].threads && !strcmp(word, kind[k].word); i++) {
			struct worker *w = &worker[workers++];
			pthread_t t;

			if (workers == MOST)
				wrong("too many threads");
			*w = (struct worker){ word, kind[k].turn, now_ns() };
			if (pthread_create(&t, NULL, work, w))
				wrong("no thread");
		}
}

int main(int argc, char **argv)
{
	victim_eintr = victim_option(argc, argv, "eintr");
	descriptors = count_names("/proc/self/fd", NULL);
	for (int i = 1; i < argc; i++)
		start_kind(argv[i]);
	wait_started(workers);
	victim_ready();
	while (!victim_over(50))
		for (int i = 0; i < workers; i++)
			if (now_ns() > worker[i].seen + LONGEST_S * 1000 * MS)
				wrong("%s makes no progress", worker[i].word);
	_exit(0);
}
