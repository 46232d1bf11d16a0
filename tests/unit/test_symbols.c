// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../agent/symbols.h"
#include "../../agent/symbols_live.h"
#include "../../inject/elf.h"
#include "../../inject/elf_range.h"
#include "../../inject/image.h"
#include "child.h"
#include "toolchain.h"

#define BASE   0x7f0000000000ULL
#define FRAMES 32

static char *dir;

static void setup(void)
{
	dir = tool_dir();
}

static void teardown(void)
{
	tool_clean(dir);
}

TestSuite(symbols, .init = setup, .fini = teardown, .timeout = 120);

/* One file as if it were mapped. */
struct loaded {
	char *path;
	uint64_t bias;
	struct symbol_map map[16];
	size_t n;
	struct symbols *s;
};

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *e;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(elf_file_open(fd, &e), 0);
	return e;
}

/* Maps dir/name as the kernel would, and opens it with fn. */
static void load_with(struct loaded *l, const char *name, symbol_open_fn fn, void *arg)
{
	const struct elf_segment *seg;
	struct elf_file *e;
	size_t i, n;

	*l = (struct loaded){ .path = tool_path(dir, name) };
	e = open_elf(l->path);
	n = elf_file_segments(e, &seg);
	for (i = 0; i < n && l->n < 16; i++) {
		uint64_t in = seg[i].vaddr & 4095;

		if (seg[i].type != PT_LOAD)
			continue;
		if (!l->n)
			l->bias = seg[i].vaddr < 4096 ? BASE : 0;
		l->map[l->n++] = (struct symbol_map){
			.start = l->bias + seg[i].vaddr - in,
			.end = l->bias + ((seg[i].vaddr + seg[i].memsz + 4095) & ~4095ULL),
			.offset = seg[i].offset - in,
			.path = l->path,
		};
	}
	elf_file_close(e);
	cr_assert_eq(symbols_new(l->map, l->n, fn, arg, &l->s, NULL), 0);
}

static void load(struct loaded *l, const char *name)
{
	load_with(l, name, symbols_path_open, NULL);
}

static void unload(struct loaded *l)
{
	symbols_free(l->s);
	free(l->path);
}

/* The best that is known of any of its maps. */
static enum symbols_state state_of(const struct loaded *l, int *error)
{
	enum symbols_state best = SYMBOLS_UNASKED, one;
	int err;

	for (size_t i = 0; i < l->n; i++) {
		one = symbols_state(l->s, i, &err);
		if (one == SYMBOLS_UNASKED)
			continue;
		best = one;
		if (error)
			*error = err;
	}
	return best;
}

/* The address of a symbol of the file `name`. */
static uint64_t address_of(const char *name, const char *symbol, uint64_t *size)
{
	char *path = tool_path(dir, name);
	struct elf_file *e = open_elf(path);
	struct elf_sym s;

	cr_assert_eq(elf_file_lookup(e, symbol, &s), 0, "%s in %s", symbol, name);
	if (size)
		*size = s.size;
	elf_file_close(e);
	free(path);
	return s.value;
}

static void check_name(struct loaded *l, uint64_t at, const char *want)
{
	struct symbol_frame f[FRAMES];
	size_t n = symbols_find(l->s, l->bias + at, f, FRAMES);

	if (!want) {
		cr_assert(!n || !f[n - 1].name, "%s", f[n ? n - 1 : 0].name);
		return;
	}
	cr_assert(n, "%s is not found", want);
	cr_assert(f[n - 1].name && !strcmp(f[n - 1].name, want), "%s is %s", want,
		  f[n - 1].name ? f[n - 1].name : "none");
}

static const char plain[] =
	"#include <unistd.h>\n"
	"static int counter;\n"
	"__attribute__((noinline)) static int inner(int x) { return x + counter++; }\n"
	"__attribute__((noinline)) int shown(int x) { return inner(x) * 3; }\n"
	"int main(void) { shown(1); for (;;) pause(); }\n";

/* Where the linker puts things: PIE and not, static, one segment for all, a base of its own. */
Test(symbols, kinds_of_files)
{
	static const char *const flags[] = { "-O1",
					     "-O1 -no-pie",
					     "-O1 -static",
					     "-O1 -static-pie",
					     "-O1 -Wl,-z,noseparate-code",
					     "-O1 -no-pie -Wl,-Ttext-segment=0x10000000",
					     "-O1 -shared -fPIC -Wl,-Ttext-segment=0x3000000",
					     "-O1 -Wl,-z,max-page-size=0x200000" };
	struct loaded l;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		uint64_t at, size;

		tool_build(dir, "prog", plain, flags[i]);
		load(&l, "prog");
		at = address_of("prog", "shown", &size);
		check_name(&l, at, "shown");
		check_name(&l, at + size - 1, "shown");
		check_name(&l, address_of("prog", "inner", NULL), "inner");
		check_name(&l, address_of("prog", "main", NULL) + 1, "main");
		check_name(&l, 0x7fffffff0000ULL, NULL);
		cr_assert_eq(state_of(&l, NULL), SYMBOLS_NAMES, "%s: %s", flags[i],
			     symbols_state_text(state_of(&l, NULL)));
		unload(&l);
	}
}

Test(symbols, stripped)
{
	uint64_t shown, inner;
	struct loaded l;

	tool_build(dir, "lib", plain, "-O1 -shared -fPIC");
	shown = address_of("lib", "shown", NULL);
	inner = address_of("lib", "inner", NULL);
	cr_assert(tool_run(dir, "strip -s lib"));
	load(&l, "lib");
	check_name(&l, shown, "shown");
	check_name(&l, inner, NULL);
	cr_assert_eq(state_of(&l, NULL), SYMBOLS_EXPORTED);
	unload(&l);
	tool_build(dir, "prog", plain, "-O1");
	shown = address_of("prog", "shown", NULL);
	cr_assert(tool_run(dir, "strip -s prog"));
	load(&l, "prog");
	check_name(&l, shown, NULL);
	cr_assert_eq(symbols_find(l.s, l.bias + shown, NULL, 0), 0);
	cr_assert(state_of(&l, NULL) == SYMBOLS_EXPORTED || state_of(&l, NULL) == SYMBOLS_NONE);
	cr_assert(symbols_build_id(l.s, 0));
	cr_assert_eq(strlen(symbols_build_id(l.s, 0)), 40);
	unload(&l);
}

/* As symbols_path_open, but /usr/lib/debug is the directory of the test. */
static int open_here(void *unused, const struct symbol_map *m)
{
	static const char there[] = "/usr/lib/debug/";
	char path[512];

	(void)unused;
	if (m->end || strncmp(m->path, there, sizeof(there) - 1) != 0)
		return symbols_path_open(NULL, m);
	snprintf(path, sizeof(path), "%s/debug/%s", dir, m->path + sizeof(there) - 1);
	return symbols_path_open(NULL, &(struct symbol_map){ .path = path });
}

/* Splits dir/prog and returns where inner was. */
static uint64_t split(const char *flags)
{
	uint64_t inner;

	tool_build(dir, "prog", plain, flags);
	inner = address_of("prog", "inner", NULL);
	cr_assert(tool_run(dir, "objcopy --only-keep-debug prog prog.debug && strip -s prog"));
	return inner;
}

static void check_split(uint64_t inner, const char *want, enum symbols_state state)
{
	struct loaded l;

	load_with(&l, "prog", open_here, NULL);
	check_name(&l, inner, want);
	cr_assert_eq(state_of(&l, NULL), state, "%s", symbols_state_text(state_of(&l, NULL)));
	unload(&l);
}

#define BY_ID                                                                                      \
	"id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && "                                   \
	"mkdir -p debug/.build-id/$(echo $id | cut -c1-2) && "                                     \
	"cp prog.debug debug/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug"

Test(symbols, debug_file_by_build_id)
{
	uint64_t inner = split("-O1 -Wl,--build-id");

	check_split(inner, NULL, SYMBOLS_EXPORTED);
	cr_assert(tool_run(dir, BY_ID));
	check_split(inner, "inner", SYMBOLS_NAMES);
	inner = split("-O1 -g -Wl,--build-id");
	cr_assert(tool_run(dir, BY_ID));
	check_split(inner, "inner", SYMBOLS_LINES);
	/* a file with another build id in its place is another's */
	tool_build(dir, "other", plain, "-O0 -g -Wl,--build-id");
	cr_assert(tool_run(dir, "for f in $(find debug -name '*.debug'); do cp other $f; done"));
	check_split(inner, NULL, SYMBOLS_EXPORTED);
}

Test(symbols, debug_file_by_link)
{
	static const char *const places[] = { ".", ".debug", "debug$PWD" };

	for (size_t i = 0; i < 2 * sizeof(places) / sizeof(places[0]); i++) {
		/* with a build id, and with the checksum alone */
		uint64_t inner =
			split(i % 2 ? "-O1 -g -Wl,--build-id" : "-O1 -g -Wl,--build-id=none");

		cr_assert(tool_run(dir,
				   "objcopy --add-gnu-debuglink=prog.debug prog && mkdir -p \"%s\" "
				   "&& { mv prog.debug \"%s\" || :; } 2>/dev/null",
				   places[i / 2], places[i / 2]));
		check_split(inner, "inner", SYMBOLS_LINES);
		cr_assert(tool_run(dir, "printf x >>\"%s/prog.debug\"", places[i / 2]));
		if (i % 2 == 0)
			check_split(inner, NULL, SYMBOLS_EXPORTED);
		cr_assert(tool_run(dir, "rm \"%s/prog.debug\"", places[i / 2]));
	}
}

/* What Fedora does: the functions that are not exported, compressed inside of the file. */
Test(symbols, compressed_symbols_inside)
{
	uint64_t inner, shown;
	struct loaded l;

	tool_build(dir, "lib", plain, "-O1 -shared -fPIC");
	inner = address_of("lib", "inner", NULL);
	shown = address_of("lib", "shown", NULL);
	cr_assert(tool_run(
		dir, "objcopy -S --keep-symbol=inner lib mini && xz -k mini && strip -s lib && "
		     "objcopy --add-section .gnu_debugdata=mini.xz lib"));
	load(&l, "lib");
	check_name(&l, inner, "inner");
	check_name(&l, shown, "shown");
	cr_assert_eq(state_of(&l, NULL), SYMBOLS_NAMES);
	unload(&l);
}

Test(symbols, another_file_now)
{
	struct loaded l;
	uint64_t at;
	int error;

	tool_build(dir, "prog", plain, "-O1 -Wl,--build-id");
	at = address_of("prog", "shown", NULL);
	load(&l, "prog");
	for (size_t i = 0; i < l.n; i++)
		l.map[i].build_id = "00112233445566778899aabbccddeeff00112233";
	check_name(&l, at, NULL);
	cr_assert_eq(state_of(&l, &error), SYMBOLS_CHANGED);
	cr_assert_eq(error, -ESTALE);
	unload(&l);
	/* no build id is known, but the file has no code where the mapping says */
	load(&l, "prog");
	for (size_t i = 0; i < l.n; i++)
		l.map[i].offset += 0x100000;
	check_name(&l, at, NULL);
	cr_assert_eq(state_of(&l, NULL), SYMBOLS_CHANGED);
	unload(&l);
	load(&l, "prog");
	cr_assert(tool_run(dir, "rm prog"));
	check_name(&l, at, NULL);
	cr_assert_eq(state_of(&l, &error), SYMBOLS_GONE);
	cr_assert_eq(error, -ENOENT);
	unload(&l);
	tool_write(dir, "prog",
		   "this was a program, and is a text now; it is longer than a header.\n");
	l = (struct loaded){ .path = tool_path(dir, "prog"), .n = 1 };
	l.map[0] = (struct symbol_map){ .end = 4096, .path = l.path };
	cr_assert_eq(symbols_new(l.map, 1, symbols_path_open, NULL, &l.s, NULL), 0);
	check_name(&l, 0x100, NULL);
	cr_assert_eq(state_of(&l, NULL), SYMBOLS_BAD);
	unload(&l);
}

/* A hostile profile names what must not be opened. */
Test(symbols, no_such_files)
{
	static const char *const paths[] = { "/dev/zero",
					     "/proc/kmsg",
					     "/proc/self/status",
					     "relative",
					     "/tmp",
					     "/sys/kernel/uevent_seqnum",
					     "[vdso]",
					     "" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct symbol_map m = { .start = 4096, .end = 8192, .path = paths[i] };
		struct symbol_frame f;
		struct symbols *s;

		cr_assert_eq(symbols_new(&m, 1, symbols_path_open, NULL, &s, NULL), 0);
		cr_assert_eq(symbols_find(s, 5000, &f, 1), 0);
		cr_assert(symbols_state(s, 0, NULL) == SYMBOLS_GONE ||
				  symbols_state(s, 0, NULL) == SYMBOLS_NO_FILE,
			  "%s", paths[i]);
		symbols_free(s);
	}
	cr_assert(tool_run(dir, "mkfifo pipe"));
	{
		char *path = tool_path(dir, "pipe");

		cr_assert_eq(symbols_path_open(NULL, &(struct symbol_map){ .path = path }),
			     -EINVAL);
		free(path);
	}
}

/* Included by a path that is not absolute. */
static const char in_header[] =
	"static inline __attribute__((always_inline)) int three(int x) { return x * 3 + "
	"anonymous({x}); }\n"
	"static inline __attribute__((always_inline)) int four(int x) {\n"
	"  if (x > 7)\n"
	"    return three(x) + 1;\n"
	"  return three(x + 1);\n"
	"}\n";

static const char in_cpp[] =
	"#include <vector>\n"
	"#include <string>\n"
	"#include <map>\n"
	"namespace {\n"
	"struct hidden { int v; int twice() const { return v * 2; } };\n"
	"__attribute__((noinline)) int anonymous(hidden h) { return h.twice() + 1; }\n"
	"}\n"
	"namespace shop {\n"
	"template <class T> struct box {\n"
	"  std::vector<T> v;\n"
	"  inline __attribute__((always_inline)) void add(const T &t) { v.push_back(t); }\n"
	"  __attribute__((noinline)) T sum() const { T s{}; for (auto &t : v) s += t; return s; }\n"
	"};\n"
	"__attribute__((noinline)) std::string label(int n) {\n"
	"  box<std::string> b;\n"
	"  for (int i = 0; i < n; i++) b.add(std::to_string(i));\n"
	"  return b.sum();\n"
	"}\n"
	"}\n"
	"#include \"inc/short.h\"\n"
	"int main(int argc, char **argv) {\n"
	"  std::map<int, std::string> m;\n"
	"  auto f = [&](int k) { m[k] = shop::label(k); return four(k); };\n"
	"  int s = 0;\n"
	"  for (int i = 0; i < argc * 4; i++) s += f(i) + four(s);\n"
	"  return s + (int)m.size();\n"
	"}\n";

static void strip_newline(char *s)
{
	s[strcspn(s, "\n")] = 0;
}

/* The part of addr2line's "file:line (discriminator 2)" that is told apart. */
static unsigned cut_line(char *place)
{
	char *colon;

	place[strcspn(place, " ")] = 0;
	colon = strrchr(place, ':');
	if (!colon)
		return 0;
	*colon = 0;
	return colon[1] == '?' ? 0 : (unsigned)atoi(colon + 1);
}

struct tally {
	size_t addresses, frames, inlined, other;
	char first[2048];
};

/*
 * Where the name of an inlined function is not a linker's (a lambda's), addr2line has that of the
 * function around it.
 */
static bool same_name(const struct symbol_frame *f, const struct symbol_frame *last,
		      const char *name)
{
	if (!strcmp(f->name ? f->name : "??", name))
		return true;
	return f->inlined && last->name && !strcmp(last->name, name);
}

/* One frame as addr2line tells it; last is the outermost one. */
static void compare(const struct symbol_frame *f, const struct symbol_frame *last, const char *name,
		    char *place, uint64_t at, struct tally *t)
{
	unsigned line = cut_line(place);
	const char *file = strcmp(place, "??") ? place : "";

	/* it names the gap behind a function after that */
	if ((!f && !line) || (f && f == last && !f->name))
		return;
	t->frames++;
	if (f && same_name(f, last, name) && f->line == line &&
	    (!line || !strcmp(f->file ? f->file : "", file)))
		return;
	if (!t->other++)
		snprintf(t->first, sizeof(t->first),
			 "0x%llx: %.500s %.500s:%u, addr2line %.200s %.300s:%u",
			 (unsigned long long)at, f && f->name ? f->name : "-",
			 f && f->file ? f->file : "-", f ? f->line : 0, name, file, line);
}

/* Every third byte of the code of `prog` from start on, asked of addr2line too. */
static void check_addr2line(struct loaded *l, uint64_t start, uint64_t end, struct tally *t)
{
	char *path = tool_path(dir, "addresses"), name[4096], place[4096];
	struct symbol_frame f[FRAMES];
	size_t n = 0, k = 0, count = 0;
	uint64_t at = 0, *pc = calloc((size_t)(end - start), sizeof(*pc));
	FILE *out = fopen(path, "w");

	cr_assert(out && pc);
	for (uint64_t a = start; a < end; a += 3) {
		fprintf(out, "0x%llx\n", (unsigned long long)a);
		pc[count++] = l->bias + a;
	}
	fclose(out);
	cr_assert_eq(symbols_prepare(l->s, pc, count, NULL), 0);
	cr_assert(tool_run(dir, "addr2line -a -i -f -e '%s' <addresses >answers", l->path));
	free(path);
	path = tool_path(dir, "answers");
	out = fopen(path, "r");
	cr_assert(out);
	while (fgets(name, sizeof(name), out)) {
		strip_newline(name);
		if (!strncmp(name, "0x", 2)) {
			t->addresses++;
			if (k < n && t->addresses > 1)
				t->other++;
			at = strtoull(name, NULL, 16);
			n = symbols_find(l->s, l->bias + at, f, FRAMES);
			k = 0;
			continue;
		}
		cr_assert(fgets(place, sizeof(place), out));
		strip_newline(place);
		t->inlined += k > 0;
		compare(k < n ? &f[k] : NULL, &f[n ? n - 1 : 0], name, place, at, t);
		k++;
	}
	fclose(out);
	free(path);
	free(pc);
}

static void build_cpp(const char *flags)
{
	cr_assert(tool_run(dir, "mkdir -p inc"));
	tool_write(dir, "inc/short.h", in_header);
	tool_write(dir, "prog.cc", in_cpp);
	cr_assert(tool_run(dir, "c++ -w -o prog prog.cc %s", flags), "c++ fails with %s", flags);
}

static void text_of(const char *name, uint64_t *start, uint64_t *end)
{
	char *path = tool_path(dir, name);
	struct elf_file *e = open_elf(path);
	uint64_t size;

	cr_assert_eq(elf_file_section(e, ".text", start, &size), 0);
	*end = *start + size;
	elf_file_close(e);
	free(path);
}

Test(symbols, as_addr2line)
{
	static const char *const flags[] = { "-O2 -g",
					     "-O2 -g -gdwarf-4",
					     "-O1 -g -no-pie",
					     "-O0 -g",
					     "-O2 -g -gz",
					     "-O2 -g -ffunction-sections",
					     "-O2 -g -gdwarf-4 -fdebug-types-section" };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct tally t = { 0 };
		uint64_t start, end;
		struct loaded l;

		build_cpp(flags[i]);
		text_of("prog", &start, &end);
		load(&l, "prog");
		check_addr2line(&l, start, end, &t);
		cr_assert(t.addresses > 300 && t.inlined > (strstr(flags[i], "O0") ? 0U : 300U));
		/* it has the wrong source file for some functions of headers */
		cr_assert(t.other * 100 <= t.frames, "%s: %zu of %zu differ, first %s", flags[i],
			  t.other, t.frames, t.first);
		cr_assert_eq(state_of(&l, NULL), SYMBOLS_LINES);
		unload(&l);
	}
}

/* Without files and lines the functions are the same, those that were inlined too. */
Test(symbols, without_places)
{
	struct symbol_frame f[FRAMES], g[FRAMES];
	uint64_t start, end;
	size_t inlined = 0;
	struct loaded l, m;

	build_cpp("-O2 -g");
	text_of("prog", &start, &end);
	load(&l, "prog");
	load(&m, "prog");
	symbols_skip_places(m.s);
	for (uint64_t at = start; at < end; at += 64) {
		size_t n = symbols_find(l.s, l.bias + at, f, FRAMES);

		/* what has a line and no function is nothing then */
		if (n == 1 && !f[0].name)
			continue;
		cr_assert_eq(symbols_find(m.s, m.bias + at, g, FRAMES), n);
		for (size_t i = 0; i < n; i++) {
			cr_assert_str_eq(f[i].name, g[i].name);
			cr_assert_eq(f[i].inlined, g[i].inlined);
			cr_assert(!g[i].file && !g[i].line);
			inlined += f[i].inlined;
		}
	}
	cr_assert_gt(inlined, 10u);
	unload(&l);
	unload(&m);
}

/* ---- debug info that dwz has made smaller */

/* All frames of both at each 16th byte of the code are the same; returns how many were inlined. */
static size_t same_frames(struct loaded *l, struct loaded *m, uint64_t start, uint64_t end)
{
	struct symbol_frame f[FRAMES], g[FRAMES];
	size_t inlined = 0, n = 0;
	uint64_t *pc = calloc((size_t)(end - start), sizeof(*pc));

	cr_assert(pc);
	cr_assert_eq(l->bias, m->bias);
	for (uint64_t at = start; at < end; at += 16)
		pc[n++] = l->bias + at;
	cr_assert_eq(symbols_prepare(l->s, pc, n, NULL), 0);
	cr_assert_eq(symbols_prepare(m->s, pc, n, NULL), 0);
	for (size_t k = 0; k < n; k++) {
		size_t frames = symbols_find(l->s, pc[k], f, FRAMES);

		cr_assert_eq(symbols_find(m->s, pc[k], g, FRAMES), frames);
		for (size_t i = 0; i < frames; i++) {
			const char *a = f[i].name ? f[i].name : "-";
			const char *b = g[i].name ? g[i].name : "-";

			cr_assert_str_eq(a, b);
			cr_assert_eq(f[i].line, g[i].line, "%s: %u, %u", a, f[i].line, g[i].line);
			cr_assert(!f[i].file == !g[i].file);
			cr_assert(!f[i].file || !strcmp(f[i].file, g[i].file), "%s: %s, %s", a,
				  f[i].file, g[i].file);
			inlined += f[i].inlined && f[i].line;
		}
	}
	free(pc);
	return inlined;
}

/* `prog` is as `whole`, which is the same program before. */
static void check_dwz(void)
{
	uint64_t start, end;
	struct loaded l, m;

	text_of("whole", &start, &end);
	load(&l, "whole");
	load_with(&m, "prog", open_here, NULL);
	cr_assert_gt(same_frames(&l, &m, start, end), 30u);
	cr_assert_eq(state_of(&m, NULL), SYMBOLS_LINES);
	unload(&l);
	unload(&m);
}

static const char *const dwarfs[] = { "-O2 -g -gdwarf-5", "-O2 -g -gdwarf-4" };

Test(symbols, dwz_of_one_file)
{
	for (size_t i = 0; i < sizeof(dwarfs) / sizeof(dwarfs[0]); i++) {
		build_cpp(dwarfs[i]);
		cr_assert(tool_run(dir, "cp prog whole && dwz prog && ! cmp -s prog whole"),
			  "dwz has failed, or is not there");
		check_dwz();
	}
}

#define DWZ_COMMON                                                                                 \
	"mkdir -p debug/.dwz && rm -f common && "                                                  \
	"dwz -m common -M /usr/lib/debug/.dwz/common.debug "
#define HAS_LINK(file) "readelf -SW " file " | grep -q gnu_debugaltlink"

/* What two files have in common is in a third one, whose place is below /usr/lib/debug/.dwz. */
Test(symbols, dwz_with_a_common_file)
{
	for (size_t i = 0; i < sizeof(dwarfs) / sizeof(dwarfs[0]); i++) {
		uint64_t at;
		struct loaded l;

		build_cpp(dwarfs[i]);
		cr_assert(tool_run(dir, "cp prog whole && cp prog other && " DWZ_COMMON
					"prog other && " HAS_LINK(
						"prog") " && cp common debug/.dwz/common.debug"));
		check_dwz();
		/* without it, and with another one in its place, what is told is right as well */
		at = address_of("prog", "main", NULL);
		for (int k = 0; k < 2; k++) {
			cr_assert(tool_run(dir, k ? "cp whole debug/.dwz/common.debug"
						  : "rm debug/.dwz/common.debug"));
			load_with(&l, "prog", open_here, NULL);
			check_name(&l, at, "main");
			unload(&l);
		}
	}
}

/* As distributions have it: debug files by build id, and what they have in common. */
Test(symbols, dwz_of_debug_files)
{
	build_cpp("-O2 -g -Wl,--build-id");
	cr_assert(tool_run(
		dir, "cp prog whole && objcopy --only-keep-debug prog prog.debug && "
		     "cp prog.debug other.debug && strip -s prog && " DWZ_COMMON
		     "prog.debug other.debug && " HAS_LINK(
			     "prog.debug") " && cp common debug/.dwz/common.debug && " BY_ID));
	check_dwz();
}

/* Rust's names are as good as any other to an assembler. */
Test(symbols, rust_names)
{
	static const char source[] =
		"__asm__(\".text\\n.globl _ZN4core3fmt5write17h0123456789abcdefE\\n\"\n"
		"\".type _ZN4core3fmt5write17h0123456789abcdefE,@function\\n\"\n"
		"\"_ZN4core3fmt5write17h0123456789abcdefE: nop; ret\\n\"\n"
		"\".size _ZN4core3fmt5write17h0123456789abcdefE, 2\\n\"\n"
		"\"_RNvC5hello4main: nop; nop; ret\\n\");\n"
		"int main(void) { return 0; }\n";
	struct loaded l;
	uint64_t at;

	tool_build(dir, "prog", source, "-O1");
	at = address_of("prog", "_ZN4core3fmt5write17h0123456789abcdefE", NULL);
	load(&l, "prog");
	check_name(&l, at, "_ZN4core3fmt5write17h0123456789abcdefE");
	/* without type and size */
	check_name(&l, at + 2, "_RNvC5hello4main");
	check_name(&l, at + 4, "_RNvC5hello4main");
	unload(&l);
}

/* Damage to debug information costs lines, not names. */
Test(symbols, damaged_debug_info)
{
	struct symbol_frame f[FRAMES];
	struct loaded l;
	uint64_t at;
	int error = 0;

	build_cpp("-O2 -g");
	at = address_of("prog", "main", NULL);
	cr_assert(tool_run(
		dir,
		"objcopy -O binary --only-section=.debug_info --set-section-flags "
		".debug_info=alloc prog info && yes ruin | head -c $(stat -c %%s info) >noise && "
		"objcopy --update-section .debug_info=noise prog"));
	load(&l, "prog");
	check_name(&l, at, "main");
	cr_assert_eq(symbols_find(l.s, l.bias + at, f, FRAMES), 1);
	cr_assert_eq(state_of(&l, &error), SYMBOLS_DAMAGED);
	cr_assert_eq(error, 0);
	unload(&l);
}

static bool ends_with(const char *s, const char *end)
{
	return strlen(s) >= strlen(end) && !strcmp(s + strlen(s) - strlen(end), end);
}

static void check_live(const struct symbols_live *live, uint64_t at, const char *want)
{
	struct symbol_map map[256];
	struct symbol_frame f[FRAMES];
	struct symbols *s;
	size_t n = live->maps->n < 256 ? live->maps->n : 256;

	for (size_t i = 0; i < n; i++) {
		const struct map *m = &live->maps->v[i];

		map[i] = (struct symbol_map){
			.start = m->start, .end = m->end, .offset = m->offset, .path = m->name
		};
	}
	cr_assert_eq(symbols_new(map, n, symbols_live_open, (void *)live, &s, NULL), 0);
	n = symbols_find(s, at, f, FRAMES);
	/* with debug information of libc it is "__libc_pause", as the source has it */
	cr_assert(n && f[n - 1].name && ends_with(f[n - 1].name, want), "%s is %s", want,
		  n && f[n - 1].name ? f[n - 1].name : "none");
	symbols_free(s);
}

static void check_process(pid_t pid, const char *const *names, size_t n)
{
	struct symbols_live live;
	struct modules mods;
	struct target t;
	struct maps maps;
	struct symbol sym;

	child_look(pid, &t, &maps, &mods);
	live = symbols_live_begin(&t, &maps);
	for (size_t i = 0; i < n; i++) {
		cr_assert_eq(modules_symbol(&mods, names[i], &sym), 0, "%s", names[i]);
		check_live(&live, sym.addr + 1, names[i]);
	}
	child_look_away(&t, &maps, &mods);
}

/* Of a process: the program, a library, the kernel's own page; and files that are gone. */
Test(symbols, of_a_process)
{
	static const char *const names[] = { "main", "pause", "shown" };
	struct symbols_live live;
	struct modules mods;
	struct target t;
	struct maps maps;
	pid_t pid;

	tool_build(dir, "prog", plain, "-O1 -rdynamic");
	pid = tool_start(dir, "prog", NULL);
	check_process(pid, names, 3);
	child_look(pid, &t, &maps, &mods);
	live = symbols_live_begin(&t, &maps);
	for (size_t i = 0; i < mods.n; i++)
		if (mods.v[i].is_vdso) {
			struct symbol_map m = { .start = mods.v[i].start,
						.end = mods.v[i].end,
						.path = "[vdso]" };
			struct elf_file *e;
			struct elf_sym s;
			int fd = symbols_live_open(&live, &m);

			cr_assert_geq(fd, 0);
			cr_assert_eq(elf_file_open(fd, &e), 0);
			cr_assert_eq(elf_file_lookup_dynamic(e, "__vdso_gettimeofday", &s), 0);
			elf_file_close(e);
			check_live(&live, mods.v[i].bias + s.value, "gettimeofday");
		}
	child_look_away(&t, &maps, &mods);
	/* replaced by another program of the same name; the old one is still what runs */
	cr_assert(tool_run(dir, "rm prog && cp /bin/true prog"));
	check_process(pid, names, 3);
	child_end(pid);
}

/* The map is not what is there now. */
Test(symbols, process_has_changed)
{
	struct symbols_live live;
	struct modules mods;
	struct symbol_map m;
	struct target t;
	struct maps maps;
	pid_t pid;

	tool_build(dir, "prog", plain, "-O1");
	pid = tool_start(dir, "prog", NULL);
	child_look(pid, &t, &maps, &mods);
	live = symbols_live_begin(&t, &maps);
	m = (struct symbol_map){ .start = maps.v[0].start,
				 .end = maps.v[0].end,
				 .offset = maps.v[0].offset,
				 .path = "/other" };
	cr_assert_eq(symbols_live_open(&live, &m), -ESTALE);
	m.path = maps.v[0].name;
	m.offset += 4096;
	cr_assert_eq(symbols_live_open(&live, &m), -ESTALE);
	m.offset -= 4096;
	m.start = 4096;
	cr_assert_eq(symbols_live_open(&live, &m), -ESTALE);
	child_look_away(&t, &maps, &mods);
	child_end(pid);
}

/* What is mapped, in place of a file that nobody can open any more. */
static int open_copy(void *arg, const struct symbol_map *m)
{
	uint64_t budget = (uint64_t)1 << 24;
	const struct map *v = arg;
	struct image im;
	int fd = -1;

	if (!m->end)
		return -ENOENT;
	cr_assert_eq(image_read((pid_t)v[0].inode, v[0].start, &im), 0);
	cr_assert_eq(image_to_file(&im, &budget, &fd), 0);
	image_free(&im);
	return fd;
}

Test(symbols, from_memory)
{
	struct symbol_map map[3];
	struct symbol_frame f;
	struct symbols *s;
	struct modules mods;
	struct symbol sym;
	struct target t;
	struct maps maps;
	struct map head;
	pid_t pid;

	tool_build(dir, "prog", plain, "-O1 -rdynamic");
	pid = tool_start(dir, "prog", NULL);
	child_look(pid, &t, &maps, &mods);
	for (size_t i = 0; i < 3; i++) {
		const struct map *m = &maps.v[i];

		map[i] = (struct symbol_map){
			.start = m->start, .end = m->end, .offset = m->offset, .path = m->name
		};
	}
	head = maps.v[0];
	head.inode = (uint64_t)pid;
	cr_assert_eq(symbols_new(map, 3, open_copy, &head, &s, NULL), 0);
	cr_assert_eq(modules_symbol(&mods, "shown", &sym), 0);
	cr_assert_eq(symbols_find(s, sym.addr + 1, &f, 1), 1);
	cr_assert_str_eq(f.name, "shown");
	cr_assert_eq(module_symbol(mods.v, "inner", &sym), 0);
	cr_assert_eq(symbols_find(s, sym.addr, &f, 1), 0);
	cr_assert_eq(symbols_state(s, 1, NULL), SYMBOLS_MEMORY);
	symbols_free(s);
	child_look_away(&t, &maps, &mods);
	child_end(pid);
}
