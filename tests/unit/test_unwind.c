// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/modules.h"
#include "../../inject/pagecache.h"
#include "../../inject/unwind.h"
#include "child.h"
#include "toolchain.h"

#define FRAMES 64

/* A running program with one of its threads held. */
struct seen {
	pid_t pid, tid;
	struct target t;
	struct maps maps;
	struct modules mods;
	struct unwinder *u;
	struct user_regs_struct regs;
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

TestSuite(unwind, .init = setup, .fini = teardown);

static void hold(struct seen *s, pid_t tid)
{
	int status;

	s->tid = tid;
	cr_assert_eq(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0, "%s", strerror(errno));
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	cr_assert_eq(waitpid(tid, &status, __WALL), tid);
	cr_assert_eq(ptrace(PTRACE_GETREGS, tid, NULL, &s->regs), 0);
}

static void let_go(struct seen *s)
{
	ptrace(PTRACE_DETACH, s->tid, NULL, NULL);
}

static void look(struct seen *s, pid_t pid)
{
	s->pid = pid;
	child_look(pid, &s->t, &s->maps, &s->mods);
	cr_assert_eq(unwinder_new(pid, &s->mods, &s->u), 0);
}

static void look_away(struct seen *s)
{
	unwinder_free(s->u);
	child_look_away(&s->t, &s->maps, &s->mods);
	child_end(s->pid);
}

/* Each function notes where it will be returned to; the innermost sleeps. */
static const char deep[] =
	"#include <fcntl.h>\n#include <signal.h>\n#include <stdint.h>\n#include <sys/mman.h>\n"
	"#include <unistd.h>\n"
	"uintptr_t pcs[16]; volatile int n;\n"
	"#define NOTE pcs[n++] = (uintptr_t)__builtin_return_address(0)\n"
	"#define DEEP __attribute__((noinline)) int\n"
	"static void put(void){int fd=open(\"pcs\",O_CREAT|O_TRUNC|O_WRONLY,0600);\n"
	"  if(write(fd,pcs,sizeof(pcs))<0)_exit(1); close(fd);}\n"
	"DEEP f4(int a){volatile char room[300]; room[a]=1; NOTE; put(); for(;;) pause();"
	" return a+room[1];}\n"
	"DEEP f3(int a){volatile int b=a; NOTE; return f4(b+1)*b;}\n"
	"DEEP f2(int a){volatile long b[a+9]; b[a]=2; NOTE; return f3((int)b[a])+(int)b[a];}\n"
	"DEEP f1(int a){NOTE; return f2(a)*3;}\n";

static const char deep_main[] = "int main(void){return f1(3)+1;}\n";

static const char in_handler[] = "static void on(int s){(void)s; f1(4);}\n"
				 "int main(void){signal(SIGUSR1,on); raise(SIGUSR1); return 0;}\n";

static const char on_other_stack[] =
	"static char other[65536];\n"
	"static void on(int s){(void)s; f1(4);}\n"
	"int main(void){stack_t st={.ss_sp=other,.ss_size=sizeof(other)};\n"
	" struct sigaction a={.sa_handler=on,.sa_flags=SA_ONSTACK};\n"
	" sigaltstack(&st,0); sigaction(SIGUSR1,&a,0); raise(SIGUSR1); return 0;}\n";

static const char in_thread[] =
	"#include <pthread.h>\n"
	"static void *go(void *a){f1(4); return a;}\n"
	"int main(void){pthread_t t; pthread_create(&t,0,go,0); for(;;) pause();}\n";

static void build(const char *main_part, const char *flags)
{
	char *all;

	cr_assert_geq(asprintf(&all, "%s%s", deep, main_part), 0);
	tool_build(dir, "prog", all, flags);
	free(all);
	cr_assert_eq(chdir(dir), 0);
}

static void read_pcs(uint64_t *pcs, size_t n)
{
	FILE *f = fopen("pcs", "r");

	cr_assert(f && fread(pcs, sizeof(*pcs), n, f) == n);
	fclose(f);
}

/* The notes, innermost last, must stand one after another among the frames. */
static size_t check_chain(const struct frame *v, size_t n)
{
	uint64_t pcs[4];
	size_t i;

	read_pcs(pcs, 4);
	for (i = 0; i < n && v[i].pc != pcs[3]; i++)
		continue;
	cr_assert_leq(i + 4, n, "f3 is not among %zu frames", n);
	for (size_t k = 0; k < 4; k++) {
		cr_assert_eq(v[i + k].pc, pcs[3 - k], "frame %zu", i + k);
		cr_assert(v[i + k].exact);
		cr_assert(!v[i + k].signal);
	}
	return i;
}

static void check_frames(const struct frame *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!v[i - 1].signal)
			cr_assert_gt(v[i].sp, v[i - 1].sp, "frame %zu", i);
}

static size_t signals(const struct frame *v, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += v[i].signal;
	return found;
}

static void run(struct seen *s, struct frame *v, size_t *n)
{
	struct frame again[FRAMES];
	bool complete;
	size_t n2;

	cr_assert_eq(unwinder_run(s->u, &s->regs, v, FRAMES, n, &complete), 0);
	cr_assert_eq(v[0].pc, s->regs.rip);
	cr_assert_eq(v[0].sp, s->regs.rsp);
	cr_assert(complete);
	check_frames(v, *n);
	/* what is cached gives the same */
	cr_assert_eq(unwinder_run(s->u, &s->regs, again, FRAMES, &n2, &complete), 0);
	cr_assert(complete);
	cr_assert_eq(n2, *n);
	for (size_t i = 0; i < n2; i++) {
		cr_assert_eq(again[i].pc, v[i].pc);
		cr_assert_eq(again[i].sp, v[i].sp);
		cr_assert_eq(again[i].exact, v[i].exact);
	}
}

static void check_program(const char *main_part, const char *flags, size_t handlers)
{
	struct frame v[FRAMES];
	struct seen s;
	size_t n;

	build(main_part, flags);
	look(&s, tool_start(dir, "prog", NULL));
	hold(&s, s.pid);
	run(&s, v, &n);
	check_chain(v, n);
	cr_assert_eq(signals(v, n), handlers);
	let_go(&s);
	look_away(&s);
}

Test(unwind, known_depth)
{
	check_program(deep_main, "-O1 -fno-omit-frame-pointer", 0);
}

Test(unwind, without_frame_pointers)
{
	check_program(deep_main, "-O2 -fomit-frame-pointer", 0);
}

Test(unwind, fixed_address)
{
	check_program(deep_main, "-O2 -no-pie -fno-pie", 0);
}

Test(unwind, static_program_without_table)
{
	tool_write(dir, "t.c", "int main(void){return 0;}");
	if (!tool_run(dir, "cc -static -o t t.c"))
		cr_skip_test("no static libc here (libc.a of libc6-dev is missing)");
	check_program(deep_main, "-O2 -static -no-pie -Wl,--no-eh-frame-hdr", 0);
	check_program(deep_main, "-O2 -static", 0);
	check_program(deep_main, "-O2 -static-pie", 0);
}

Test(unwind, through_a_signal_handler)
{
	check_program(in_handler, "-O2", 1);
}

Test(unwind, through_another_stack)
{
	check_program(on_other_stack, "-O2", 1);
}

Test(unwind, thread_start)
{
	struct frame v[FRAMES];
	struct seen s;
	size_t n, at;
	char path[64];
	struct dirent *e;
	DIR *d;

	build(in_thread, "-O2 -pthread");
	look(&s, tool_start(dir, "prog", NULL));
	snprintf(path, sizeof(path), "/proc/%d/task", (int)s.pid);
	d = opendir(path);
	cr_assert(d);
	while ((e = readdir(d))) {
		if (atoi(e->d_name) <= 0 || atoi(e->d_name) == s.pid)
			continue;
		cr_assert(child_reach_call(s.pid, atoi(e->d_name), SYS_pause));
		hold(&s, atoi(e->d_name));
		run(&s, v, &n);
		at = check_chain(v, n);
		cr_assert_eq(n, at + 6, "go, start_thread and clone come after f1");
		let_go(&s);
	}
	closedir(d);
	look_away(&s);
}

Test(unwind, limit)
{
	struct frame v[FRAMES];
	bool complete = true;
	struct seen s;
	size_t n;

	build(deep_main, "-O2");
	look(&s, tool_start(dir, "prog", NULL));
	hold(&s, s.pid);
	cr_assert_eq(unwinder_run(s.u, &s.regs, v, 2, &n, &complete), 0);
	cr_assert_eq(n, 2);
	cr_assert(!complete);
	cr_assert_eq(unwinder_run(s.u, &s.regs, v, 0, &n, &complete), -EINVAL);
	let_go(&s);
	look_away(&s);
}

/* Code that no table covers: whatever is guessed is not called exact, nor complete. */
Test(unwind, unknown_code)
{
	struct frame v[FRAMES];
	bool complete = true;
	struct seen s;
	size_t n;

	build(deep_main, "-O2");
	look(&s, tool_start(dir, "prog", NULL));
	hold(&s, s.pid);
	s.regs.rip = maps_find(&s.maps, s.regs.rsp)->start;
	s.regs.rbp = s.regs.rsp;
	cr_assert_eq(unwinder_run(s.u, &s.regs, v, FRAMES, &n, &complete), 0);
	cr_assert_geq(n, 1);
	cr_assert(!v[0].exact);
	cr_assert(!complete);
	let_go(&s);
	look_away(&s);
}

/* Registers that point anywhere. */
Test(unwind, nonsense_registers, .timeout = 120)
{
	struct frame v[FRAMES];
	bool complete;
	struct seen s;
	size_t n;

	build(deep_main, "-O2");
	look(&s, tool_start(dir, "prog", NULL));
	hold(&s, s.pid);
	srand(3);
	for (unsigned r = 0; r < 3000; r++) {
		struct user_regs_struct regs = s.regs;
		const struct module *m = &s.mods.v[(size_t)rand() % s.mods.n];
		uint64_t *w = (uint64_t *)(void *)&regs;

		regs.rip = m->text_start + (uint64_t)rand() % (m->text_end - m->text_start + 64);
		regs.rsp += (uint64_t)(rand() % 2048) - 512;
		for (int k = rand() % 4; k > 0; k--)
			w[(size_t)rand() % (sizeof(regs) / 8)] =
				(uint64_t)rand() << (rand() % 33) ^ (uint64_t)rand();
		if (unwinder_run(s.u, &regs, v, FRAMES, &n, &complete))
			continue;
		cr_assert_leq(n, FRAMES);
		check_frames(v, n);
	}
	let_go(&s);
	look_away(&s);
}

/* A module whose unwind tables are anything at all, in memory that the child shares. */
Test(unwind, damaged_tables, .timeout = 300)
{
	struct frame v[FRAMES];
	struct modules mods;
	struct module m;
	struct seen s;
	unsigned char *good, *mem;
	const struct module *obj;
	struct unwinder *u;
	bool complete;
	uint64_t at;
	size_t n, len, tables;
	pid_t pid;

	build(deep_main, "-O2");
	look(&s, tool_start(dir, "prog", NULL));
	obj = &s.mods.v[0];
	cr_assert(obj && obj->eh_frame_hdr);
	len = (size_t)(obj->ro_end - obj->start);
	good = malloc(len);
	mem = child_shared(len);
	cr_assert(good);
	for (at = 0; at < len; at += 16)
		if (elf_file_read(obj->elf, obj->start - obj->bias + at, good + at, 16))
			memset(good + at, 0, 16);
	pid = child_start(child_sleep, NULL);
	m = *obj;
	m.elf = NULL;
	m.bias = (uintptr_t)mem - (obj->start - obj->bias);
	m.start = m.ro_start = (uintptr_t)mem;
	m.end = m.ro_end = m.start + len;
	m.text_start = obj->text_start - obj->start + m.start;
	m.text_end = obj->text_end - obj->start + m.start;
	m.eh_frame_hdr = obj->eh_frame_hdr - obj->start + m.start;
	mods = (struct modules){ .v = &m, .n = 1 };
	tables = (size_t)(m.eh_frame_hdr - m.start);
	srand(4);
	for (unsigned r = 0; r < 2000; r++) {
		struct user_regs_struct regs = { 0 };

		memcpy(mem, good, len);
		for (int k = rand() % 64; k > 0; k--)
			mem[tables + (size_t)rand() % (len - tables)] = (unsigned char)rand();
		if (r % 5 == 0)
			mem[tables + (size_t)rand() % 12] = (unsigned char)rand();
		cr_assert_eq(unwinder_new(pid, &mods, &u), 0);
		for (unsigned k = 0; k < 4; k++) {
			regs.rip = m.text_start + (uint64_t)rand() % (m.text_end - m.text_start);
			regs.rsp = m.start + ((uint64_t)rand() % len & ~7ULL);
			regs.rbp = regs.rsp + 64;
			if (!unwinder_run(u, &regs, v, FRAMES, &n, &complete))
				check_frames(v, n);
		}
		unwinder_free(u);
	}
	free(good);
	child_end(pid);
	look_away(&s);
}

Test(unwind, page_cache)
{
	uint64_t *mem = child_shared(3 * 4096), word;
	struct pagecache *p;
	uint64_t base = (uintptr_t)mem;
	static const uint64_t own[2] = { 11, 12 };
	pid_t pid = child_start(child_sleep, NULL);

	mem[0] = 1;
	mem[512] = 2;
	cr_assert_eq(pagecache_new(pid, &p), 0);
	cr_assert_eq(pagecache_constant(p, base, base + 4096, NULL, 0), 0);
	cr_assert_eq(pagecache_overlay(p, 0xffff800000000000ULL, own, sizeof(own)), 0);
	cr_assert_eq(pagecache_word(p, base, &word), 0);
	cr_assert_eq(word, 1);
	cr_assert_eq(pagecache_word(p, base + 4096, &word), 0);
	cr_assert_eq(word, 2);
	mem[0] = 3;
	mem[512] = 4;
	cr_assert_eq(pagecache_word(p, base + 4096, &word), 0);
	cr_assert_eq(word, 2, "within a run");
	pagecache_next_run(p);
	cr_assert_eq(pagecache_word(p, base + 4096, &word), 0);
	cr_assert_eq(word, 4, "read again");
	cr_assert_eq(pagecache_word(p, base, &word), 0);
	cr_assert_eq(word, 1, "constant");
	/* a word that lies in two pages */
	mem[511] = 0x1111111111111111;
	mem[512] = 0x2222222222222222;
	mem[1023] = 0x3333333333333333;
	mem[1024] = 0x4444444444444444;
	pagecache_next_run(p);
	cr_assert_eq(pagecache_word(p, base + 8188, &word), 0);
	cr_assert_eq(word, 0x4444444433333333);
	cr_assert_eq(pagecache_word(p, 0xffff800000000008ULL, &word), 0);
	cr_assert_eq(word, 12);
	cr_assert_neq(pagecache_word(p, 0xffff80000000000cULL, &word), 0, "beyond its end");
	cr_assert_eq(pagecache_word(p, 8, &word), -EFAULT);
	cr_assert_eq(pagecache_word(p, UINT64_MAX - 3, &word), -EFAULT);
	pagecache_free(p);
	child_end(pid);
}

/* What a file has of what stays as it is comes from there, whether it is in memory or not. */
Test(unwind, page_cache_reads_files)
{
	const uint64_t at = 0x10000000; /* nothing is mapped there */
	const struct elf_segment *seg;
	struct elf_file *elf;
	struct pagecache *p;
	unsigned char magic[4];
	uint64_t word, end;
	size_t n, last = 0;

	cr_assert_eq(elf_file_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &elf), 0);
	n = elf_file_segments(elf, &seg);
	for (size_t i = 0; i < n; i++)
		if (seg[i].type == PT_LOAD && !(seg[i].flags & PF_W))
			last = i;
	end = at + seg[last].vaddr + seg[last].filesz;
	cr_assert_eq(pagecache_new(getpid(), &p), 0);
	cr_assert_eq(pagecache_constant(p, at, (end + 4095) & ~4095ull, elf, at), 0);
	cr_assert_eq(pagecache_read(p, at, magic, sizeof(magic)), 0);
	cr_assert_eq(memcmp(magic, "\177ELF", 4), 0);
	/* the last page is not full */
	cr_assert_eq(pagecache_read(p, end - 1, magic, 1), 0);
	cr_assert_eq(pagecache_word(p, ((end + 4095) & ~4095ull), &word), -EFAULT);
	pagecache_free(p);
	elf_file_close(elf);
}
