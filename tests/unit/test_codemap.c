// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../inject/codemap.h"
#include "../../inject/codemap_names.h"
#include "../../inject/mem.h"
#include "../../inject/modules.h"
#include "child.h"
#include "toolchain.h"

#define FORBID ((unsigned)(CODE_ALLOC | CODE_LOADER | CODE_THREADS | CODE_STDIO))

struct seen {
	pid_t pid;
	struct target t;
	struct maps maps;
	struct modules mods;
	struct code_map *code;
};

static char *dir;

static void setup(void)
{
	dir = tool_dir();
}

static void teardown(void)
{
	tool_clean(dir);
}

TestSuite(codemap, .init = setup, .fini = teardown);

static void look(struct seen *s, pid_t pid)
{
	s->pid = pid;
	child_look(pid, &s->t, &s->maps, &s->mods);
	cr_assert_eq(code_map_build(&s->mods, &s->code), 0);
}

static void look_away(struct seen *s)
{
	code_map_free(s->code);
	child_look_away(&s->t, &s->maps, &s->mods);
	child_end(s->pid);
}

static uint64_t address(const struct seen *s, const char *name)
{
	struct symbol sym;

	cr_assert_eq(modules_symbol(&s->mods, name, &sym), 0, "%s", name);
	return sym.addr;
}

static void expect(const struct seen *s, const char *name, unsigned has, unsigned has_not)
{
	unsigned kind = code_map_kind(s->code, address(s, name) + 1);

	cr_assert_eq(kind & has, has, "%s is 0x%x", name, kind);
	cr_assert_eq(kind & has_not, 0, "%s is 0x%x", name, kind);
}

static const char sleeper[] = "#include <stdlib.h>\n#include <unistd.h>\n"
			      "int main(void){free(malloc(9)); for(;;) pause();}\n";

static void check_libc(const struct seen *s)
{
	static const char *const alloc[] = { "malloc", "calloc",	 "realloc",
					     "free",   "posix_memalign", "malloc_trim" };
	static const char *const stdio[] = { "fopen", "fclose", "puts", "fflush", "fwrite" };
	static const char *const threads[] = { "fork", "setuid", "exit" };
	static const char *const wait[] = { "read", "write", "poll", "nanosleep", "pause" };
	static const char *const none[] = { "strtol", "qsort", "getenv" };

	for (size_t i = 0; i < sizeof(alloc) / sizeof(*alloc); i++)
		expect(s, alloc[i], CODE_ALLOC | CODE_LIBC, CODE_STDIO | CODE_THREADS);
	for (size_t i = 0; i < sizeof(stdio) / sizeof(*stdio); i++)
		expect(s, stdio[i], CODE_STDIO | CODE_LIBC, CODE_ALLOC | CODE_THREADS);
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		expect(s, threads[i], CODE_THREADS | CODE_LIBC, CODE_ALLOC | CODE_STDIO);
	for (size_t i = 0; i < sizeof(wait) / sizeof(*wait); i++)
		expect(s, wait[i], CODE_WRAPPER | CODE_LIBC, FORBID);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		expect(s, none[i], CODE_LIBC, FORBID | CODE_WRAPPER);
}

Test(codemap, functions_of_libc)
{
	const struct module *libc, *ldso = NULL;
	uint64_t lo, hi;
	struct seen s;

	tool_build(dir, "prog", sleeper, "");
	look(&s, tool_start(dir, "prog", NULL));
	check_libc(&s);
	expect(&s, "pthread_create", CODE_THREADS, CODE_ALLOC);
	expect(&s, "pthread_join", CODE_WRAPPER, FORBID);
	expect(&s, "dlopen", CODE_LOADER, CODE_ALLOC);
	libc = modules_glibc(&s.mods);
	for (size_t i = 0; i < s.mods.n; i++)
		if (s.mods.v[i].is_ldso)
			ldso = &s.mods.v[i];
	cr_assert(libc && ldso);
	if (!ldso)
		return;
	cr_assert_eq(code_map_kind(s.code, ldso->text_start + 99) & CODE_LOADER, CODE_LOADER);
	code_map_span(s.code, &lo, &hi);
	cr_assert_leq(lo, libc->text_start);
	cr_assert_geq(hi, ldso->text_end);
	for (uint64_t a = libc->text_start; a < libc->text_end; a += 61)
		cr_assert(code_map_kind(s.code, a) & CODE_LIBC);
	cr_assert_eq(code_map_kind(s.code, libc->text_end + 4096 * 100), 0);
	cr_assert_eq(code_map_kind(s.code, 0), 0);
	cr_assert_eq(code_map_kind(s.code, UINT64_MAX), 0);
	cr_assert_eq(code_map_kind(s.code, s.mods.v[0].text_start), 0, "the program");
	look_away(&s);
}

/* Static functions of malloc.c have no exported name, but the debug file knows them. */
Test(codemap, unnamed_functions_between)
{
	static const char *const internal[] = { "_int_malloc", "sysmalloc", "start_thread" };
	static const char *const waits[] = { "__futex_abstimed_wait_common",
					     "__libc_start_call_main" };
	const struct module *libc;
	struct symbol sym;
	struct seen s;
	unsigned found = 0;

	tool_build(dir, "prog", sleeper, "");
	look(&s, tool_start(dir, "prog", NULL));
	libc = modules_glibc(&s.mods);
	for (size_t i = 0; i < sizeof(internal) / sizeof(*internal); i++) {
		if (module_symbol(libc, internal[i], &sym))
			continue;
		found++;
		cr_assert(code_map_kind(s.code, sym.addr + 1) & FORBID, "%s", internal[i]);
	}
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		if (module_symbol(libc, waits[i], &sym))
			continue;
		found++;
		cr_assert_eq(code_map_kind(s.code, sym.addr + 1) & FORBID, 0, "%s", waits[i]);
	}
	look_away(&s);
	if (!found)
		cr_skip_test("no internal symbols of libc here (package libc6-dbg is missing)");
}

Test(codemap, trampoline_and_returns)
{
	static const unsigned char code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const struct module *libc;
	unsigned char *text, *p;
	uint64_t at, returns = 0, all = 0;
	struct seen s;
	size_t len;

	tool_build(dir, "prog", sleeper, "");
	look(&s, tool_start(dir, "prog", NULL));
	libc = modules_glibc(&s.mods);
	len = (size_t)(libc->text_end - libc->text_start);
	text = malloc(len);
	cr_assert(text);
	cr_assert_eq(mem_read(s.pid, libc->text_start, text, len), 0);
	p = memmem(text, len, code, sizeof(code));
	cr_assert(p, "this libc has no trampoline of the known shape");
	at = libc->text_start + (uint64_t)(p - text);
	for (size_t i = 0; i < sizeof(code); i++)
		cr_assert(code_map_kind(s.code, at + i) & CODE_SIGNAL);
	cr_assert(!(code_map_kind(s.code, at - 1) & CODE_SIGNAL));
	cr_assert(!(code_map_kind(s.code, at + sizeof(code)) & CODE_SIGNAL));
	cr_assert(code_map_return(s.code, at) & CODE_SIGNAL, "no call stands before it");
	cr_assert(code_map_kind(s.code, at + sizeof(code)) & CODE_WRAPPER, "behind a syscall");
	/* the entry of a function is no return address; one in five bytes at most can be one */
	cr_assert_eq(code_map_return(s.code, address(&s, "free")), 0);
	for (at = libc->text_start; at < libc->text_end; at++, all++)
		returns += code_map_return(s.code, at) != 0;
	cr_assert_gt(returns, all / 200);
	cr_assert_lt(returns, all / 5);
	free(text);
	look_away(&s);
}

Test(codemap, exemptions)
{
	uint64_t a;
	struct seen s;
	int err = 0;

	tool_build(dir, "prog", sleeper, "");
	look(&s, tool_start(dir, "prog", NULL));
	a = address(&s, "fopen");
	cr_assert(code_map_kind(s.code, a + 2) & CODE_STDIO);
	cr_assert_eq(code_map_exempt(s.code, a + 2, a + 3), 0);
	cr_assert_eq(code_map_kind(s.code, a + 2) & (FORBID | CODE_LIBC), CODE_LIBC);
	cr_assert(code_map_kind(s.code, a + 1) & CODE_STDIO);
	cr_assert(code_map_kind(s.code, a + 3) & CODE_STDIO);
	for (int i = 0; i <= CODE_EXEMPT_MAX && !err; i++)
		err = code_map_exempt(s.code, 1, 2);
	cr_assert_eq(err, -ENOSPC);
	look_away(&s);
}

static const char threaded[] =
	"#include <poll.h>\n#include <pthread.h>\n#include <semaphore.h>\n#include <time.h>\n"
	"#include <unistd.h>\n"
	"static sem_t sem;\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n"
	"static pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n"
	"static int fd[2];\n"
	"static void *in_poll(void *a){poll(0,0,-1);return a;}\n"
	"static void *in_sem(void *a){sem_wait(&sem);return a;}\n"
	"static void *in_cond(void *a){pthread_mutex_lock(&m);pthread_cond_wait(&c,&m);return a;}\n"
	"static void *in_read(void *a){char b;if(read(fd[0],&b,1)){}return a;}\n"
	"static void *in_sleep(void *a){struct timespec t={9999,0};nanosleep(&t,0);return a;}\n"
	"int main(void){void*(*f[])(void*)={in_poll,in_sem,in_cond,in_read,in_sleep,0};\n"
	" pthread_t t; int i; if(pipe(fd))return 1; sem_init(&sem,0,0);\n"
	" for(i=0;f[i];i++) pthread_create(&t,0,f[i],0);\n"
	" for(;;) pause();}\n";

/* Every word from the stack pointer up to what start_thread's caller left: nothing forbids. */
static void check_stack(const struct seen *s, pid_t tid)
{
	char path[64], line[512];
	unsigned long long sp, pc;
	uint64_t w[96];
	char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)s->pid, (int)tid);
	f = fopen(path, "r");
	cr_assert(f && fgets(line, sizeof(line), f));
	fclose(f);
	at = strrchr(line, ' ');
	cr_assert(at);
	pc = strtoull(at, NULL, 16);
	*at = 0;
	sp = strtoull(strrchr(line, ' '), NULL, 16);
	cr_assert(code_map_kind(s->code, pc) & CODE_WRAPPER, "%s", line);
	cr_assert_eq(code_map_kind(s->code, pc) & FORBID, 0);
	cr_assert_eq(mem_read(s->pid, sp, w, sizeof(w)), 0);
	for (size_t i = 0; i < sizeof(w) / sizeof(*w); i++)
		cr_assert_eq(code_map_return(s->code, w[i]) & FORBID, 0,
			     "word %zu of thread %d: 0x%lx", i, (int)tid, (unsigned long)w[i]);
}

/* Waits until each of n threads is asleep. */
static void check_threads(struct seen *s, unsigned n)
{
	char path[64];
	struct dirent *e;
	unsigned found = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)s->pid);
	d = opendir(path);
	cr_assert(d);
	while ((e = readdir(d))) {
		pid_t tid = (pid_t)atoi(e->d_name);

		if (tid <= 0)
			continue;
		cr_assert(child_reach(s->pid, tid, 'S'));
		check_stack(s, tid);
		found++;
	}
	closedir(d);
	cr_assert_eq(found, n);
}

Test(codemap, bottom_of_waiting_threads)
{
	struct seen s;

	tool_build(dir, "prog", threaded, "-pthread");
	look(&s, tool_start(dir, "prog", NULL));
	check_threads(&s, 6);
	look_away(&s);
}

Test(codemap, static_program)
{
	struct symbol sym;
	struct seen s;

	tool_write(dir, "st.c", threaded);
	if (!tool_run(dir, "cc -w -static -pthread -o st st.c"))
		cr_skip_test("no static libc here (libc.a of libc6-dev is missing)");
	look(&s, tool_start(dir, "st", NULL));
	expect(&s, "malloc", CODE_ALLOC, CODE_STDIO);
	expect(&s, "pthread_create", CODE_THREADS, CODE_ALLOC);
	expect(&s, "main", 0, FORBID);
	if (!module_symbol(&s.mods.v[0], "_int_free", &sym))
		cr_assert(code_map_kind(s.code, sym.addr) & CODE_ALLOC);
	check_threads(&s, 6);
	look_away(&s);
}

Test(codemap, allocator_library)
{
	const struct module *lib = NULL;
	char *preload;
	struct seen s;

	tool_build(dir, "prog", sleeper, "");
	tool_build(dir, "mine.so",
		   "#include <stddef.h>\nstatic char b[1<<20]; static size_t n;\n"
		   "static void *take(size_t s){void*p=b+n;n+=(s+15)&~15ul;return p;}\n"
		   "void *malloc(size_t s){return take(s);} void free(void*p){}\n"
		   "void *calloc(size_t a,size_t c){return take(a*c);}\n"
		   "void *realloc(void*p,size_t s){return take(s);}\n",
		   "-shared -fPIC");
	preload = tool_path(dir, "mine.so");
	look(&s, tool_start(dir, "prog", preload));
	for (size_t i = 0; i < s.mods.n; i++)
		if (strstr(s.mods.v[i].path, "mine.so"))
			lib = &s.mods.v[i];
	cr_assert(lib && lib->preloaded);
	for (uint64_t a = lib->text_start; a < lib->text_end; a++)
		cr_assert(code_map_kind(s.code, a) & CODE_ALLOC);
	expect(&s, "malloc", CODE_ALLOC, CODE_LIBC);
	free(preload);
	look_away(&s);
}

Test(codemap, allocator_inside_the_program)
{
	static const char source[] =
		"#include <unistd.h>\n"
		"int app_before(int a){return a*3;}\n"
		"static __attribute__((noinline)) int refill(int a){return a+getpid();}\n"
		"int je_mallctl(int a){return refill(a)+1;}\n"
		"int je_malloc(int a){return refill(a)+2;}\n"
		"int app_after(int a){return a*5;}\n"
		"int main(void){je_malloc(je_mallctl(app_before(app_after(1))));for(;;)pause();}\n";
	struct symbol sym;
	struct seen s;
	static const struct {
		const char *name;
		unsigned kind;
	} want[] = { { "je_malloc", CODE_ALLOC }, { "je_mallctl", CODE_ALLOC },
		     { "refill", CODE_ALLOC },	  { "main", 0 },
		     { "app_before", 0 },	  { "app_after", 0 } };

	tool_build(dir, "prog", source, "-O0 -fno-toplevel-reorder");
	look(&s, tool_start(dir, "prog", NULL));
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		cr_assert_eq(module_symbol(&s.mods.v[0], want[i].name, &sym), 0);
		cr_assert_eq(code_map_kind(s.code, sym.addr + 1) & FORBID, want[i].kind, "%s",
			     want[i].name);
	}
	look_away(&s);
}

/* Its names are local: the linker has made them so, and .dynsym has none of them. */
Test(codemap, allocator_inside_a_library)
{
	static const char source[] =
		"#include <sys/mman.h>\n"
		"#define HIDE __attribute__((visibility(\"hidden\")))\n"
		"int lib_before(int a){return a*3;}\n"
		"static __attribute__((noinline)) int purge(int a){return madvise(0,0,a);}\n"
		"HIDE int _rjem_mallctl(int a){return purge(a)+1;}\n"
		"HIDE void *malloc(unsigned long a){return (void*)(long)(purge(a)+2);}\n"
		"int lib_after(int a){return _rjem_mallctl(a)*5+!malloc(1);}\n";
	static const struct {
		const char *name;
		unsigned kind;
	} want[] = { { "_rjem_mallctl", CODE_ALLOC },
		     { "malloc", CODE_ALLOC },
		     { "purge", CODE_ALLOC },
		     { "lib_before", 0 },
		     { "lib_after", 0 } };
	const struct module *lib = NULL;
	struct symbol sym;
	char *preload;
	struct seen s;

	tool_build(dir, "prog", sleeper, "");
	tool_build(dir, "plugin.so", source,
		   "-O0 -fno-builtin -fno-toplevel-reorder -shared -fPIC");
	preload = tool_path(dir, "plugin.so");
	look(&s, tool_start(dir, "prog", preload));
	for (size_t i = 0; i < s.mods.n; i++)
		if (strstr(s.mods.v[i].path, "plugin.so"))
			lib = &s.mods.v[i];
	cr_assert_not_null(lib);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		cr_assert_eq(module_symbol(lib, want[i].name, &sym), 0, "%s", want[i].name);
		cr_assert_eq(code_map_kind(s.code, sym.addr + 1) & FORBID, want[i].kind, "%s",
			     want[i].name);
	}
	free(preload);
	look_away(&s);
}

/* Each name is found, so the table is in order. */
Test(codemap, names)
{
	static const struct {
		const char *name;
		unsigned kind;
	} want[] = { { "malloc", CODE_ALLOC },
		     { "aligned_alloc", CODE_ALLOC },
		     { "__libc_free", CODE_ALLOC },
		     { "valloc", CODE_ALLOC },
		     { "dlopen", CODE_LOADER },
		     { "_dl_anything", CODE_LOADER },
		     { "_IO_anything", CODE_STDIO },
		     { "wscanf", CODE_STDIO },
		     { "wprintf", CODE_STDIO },
		     { "getline", CODE_STDIO },
		     { "writev", CODE_WRAPPER },
		     { "accept", CODE_WRAPPER },
		     { "__accept", CODE_WRAPPER },
		     { "vfork", CODE_THREADS },
		     { "_Fork", CODE_THREADS },
		     { "pthread_create", CODE_THREADS },
		     { "sem_wait", CODE_WRAPPER },
		     { "mallocx", 0 },
		     { "", 0 },
		     { "strlen", 0 } };

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		cr_assert_eq(libc_name_kind(want[i].name).kinds, want[i].kind, "%s", want[i].name);
	cr_assert(alloc_name_is("je_arena_new", FAMILY_JEMALLOC));
	cr_assert(!alloc_name_is("je_arena_new", FAMILY_MIMALLOC));
	/* what malloc and free of tcmalloc end in by a jump */
	cr_assert(alloc_name_is("_ZN12_GLOBAL__N_1L13do_free_pagesEPN8tcmalloc4SpanEPv",
				FAMILY_TCMALLOC));
	cr_assert(alloc_name_is("_ZN22TCMallocImplementation15ReleaseToSystemEm", FAMILY_TCMALLOC));
	cr_assert(!alloc_name_is("_ZN12_GLOBAL__N_14workEv", FAMILY_TCMALLOC));
	cr_assert(!alloc_name_is("je_arena_new", 0));
	cr_assert(alloc_name_is("free", FAMILY_MALLOC));
	cr_assert(!alloc_name_is("main", ~0U));
}

/* A damaged libc gives a wrong map or none, never a crash. */
Test(codemap, survives_damage, .timeout = 300)
{
	char *path, *good, *bad;
	struct module m = { 0 };
	struct modules mods = { .v = &m, .n = 1, .base = 1, .link_order = true };
	struct code_map *c;
	size_t len;
	FILE *f;
	int fd;

	tool_build(dir, "mine.so",
		   "void *malloc(unsigned long s){return 0;} void free(void*p){}\n"
		   "char *gnu_get_libc_version(void){return \"1\";} int read(void){return 0;}\n"
		   "static int start_thread(int(*f)(void)){return f();}\n"
		   "int pthread_create(int(*f)(void)){return start_thread(f);}\n",
		   "-shared -fPIC -O0");
	path = tool_path(dir, "mine.so");
	f = fopen(path, "r");
	cr_assert(f);
	good = malloc(1 << 20);
	bad = malloc(1 << 20);
	len = fread(good, 1, 1 << 20, f);
	fclose(f);
	srand(9);
	for (unsigned r = 0; r < 1500; r++) {
		memcpy(bad, good, len);
		for (int k = rand() % 16; k >= 0; k--)
			bad[(size_t)rand() % len] = (char)(rand() % 3 ? rand() : -1);
		fd = memfd_create("t", MFD_CLOEXEC);
		cr_assert_eq(write(fd, bad, len), (ssize_t)len);
		if (elf_file_open(fd, &m.elf))
			continue;
		m.path = path;
		m.bias = 0x7f0000000000;
		m.text_start = m.bias + 0x1000;
		m.text_end = m.bias + (r % 7 ? 0x1200 : 0x1000);
		m.start = m.bias;
		m.end = m.text_end;
		if (!code_map_build(&mods, &c)) {
			for (uint64_t a = m.text_start - 9; a < m.text_end + 9; a++)
				code_map_return(c, a);
			code_map_free(c);
		}
		elf_file_close(m.elf);
	}
	free(good);
	free(bad);
	free(path);
}
