// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../repl/complete.h"
#include "../../repl/history.h"
#include "../../repl/prompt.h"

#define MAX 600

struct found {
	char *v[MAX];
	size_t n, start;
	int files;
};

static bool with_arenas;

static void find(struct found *f, const char *line)
{
	static const pid_t tids[] = { 4711, 4713, 99 };
	static const unsigned arenas[] = { 0, 7 };
	static const struct running running[] = { { 4711, "redis-server" },
						  { 4712, "redis-server" },
						  { 12, "tmux: server" },
						  { 1, "init" } };
	const struct complete_env env = {
		.tid = tids,
		.tids = 3,
		.arena = with_arenas ? arenas : NULL,
		.arenas = with_arenas ? 2 : 0,
		.running = running,
		.running_n = 4,
	};

	memset(f, 0, sizeof(*f));
	f->n = complete(line, strlen(line), &env, f->v, MAX, &f->start, &f->files);
}

static void found_free(struct found *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i]);
}

/* The candidates with blanks between them. */
static void expect(const char *line, const char *want)
{
	char got[4096] = "";
	struct found f;

	find(&f, line);
	for (size_t i = 0; i < f.n && strlen(got) < 3900; i++) {
		strcat(got, i ? " " : "");
		strcat(got, f.v[i]);
	}
	cr_expect_str_eq(got, want, "'%s' gives '%s'", line, got);
	cr_expect_not(f.files);
	found_free(&f);
}

static bool offers(const char *line, const char *word)
{
	struct found f;
	bool yes = false;

	find(&f, line);
	for (size_t i = 0; i < f.n; i++)
		yes |= strcmp(f.v[i], word) == 0;
	found_free(&f);
	return yes;
}

Test(complete, commands)
{
	expect("tr", "trim");
	expect("mall", "mallopt mallctl");
	expect("s", "snapshot stats serve set sleep source");
	expect("check; tri", "trim");
	expect("  che", "check");
	expect("exi", "exit");
	expect("on-error ", "continue stop");
	expect("xyz", "");
	cr_expect(offers("", "check"));
	cr_expect(offers("help ", "mallctl"));
}

Test(complete, options_of_the_command_and_of_all)
{
	expect("trim --mi", "--min-yield");
	expect("info --r", "--raw --read-only");
	expect("trim --ra", "");
	cr_expect(offers("trim --", "--dry-run"));
	cr_expect_not(offers("trim --", "--pid"));
}

Test(complete, names_of_the_allocators)
{
	cr_expect(offers("mallctl stats.all", "stats.allocated"));
	cr_expect(offers("mallctl --list arenas.d", "arenas.dirty_decay_ms"));
	cr_expect_not(offers("mallctl arena.0.", "arena.0.reset"), "never to be used from outside");
	/* past an index, which is typed or still to be typed */
	expect("mallctl arena.0.dirty", "arena.0.dirty_decay_ms");
	expect("mallctl arena.all.pur", "arena.all.purge");
	expect("mallctl arena.12", "arena.12.");
	expect("mallctl arena.a", "arena.all.");
	cr_expect(offers("mallctl arena.", "arena.0."));
	cr_expect(offers("mallctl arena.", "arena.all."));
	expect("mallctl arena.x.pur", "");
	expect("mallctl stats.arenas.3.bins.7.curr", "stats.arenas.3.bins.7.curregs");
	expect("mallctl stats.arenas.3.bins.all.nonf", "stats.arenas.3.bins.all.nonfull_slabs");
	expect("mallctl stats.arenas.3.extents.", "stats.arenas.3.extents.0. "
						  "stats.arenas.3.extents.all.");
	expect("mallctl stats.arenas.99999999999999999999999.bins.", "");
	expect("mallopt M_ARENA_M", "M_ARENA_MAX");
	expect("mallopt M_ARENA_MAX ", "");
	expect("mallctl stats.allocated sta", "");
	expect("mallctl background_thread ", "true false");
	expect("mallctl stats.allocated ", "");
}

/* Once jemalloc has told which there are. */
Test(complete, arenas_that_there_are)
{
	with_arenas = true;
	expect("purge ", "all 0 7");
	expect("purge 7", "7");
	expect("decay dirty ", "all 0 7 default");
	expect("decay dirty all ", "off");
	expect("mallctl arena.", "arena.0. arena.7. arena.all.");
	expect("mallctl arena.7", "arena.7.");
	expect("mallctl arena.5.dirty", "arena.5.dirty_decay_ms");
	expect("mallctl stats.arenas.7.bins.", "stats.arenas.7.bins.0. stats.arenas.7.bins.all.");
}

Test(complete, processes)
{
	expect("attach re", "redis-server");
	expect("attach ", "redis-server init");
	expect("attach 47", "4711 4712");
	expect("attach redis-server ", "");
	cr_expect_eq(complete_about("attach x", 8), COMPLETE_PROCESS);
	cr_expect_eq(complete_about("when rss > 1 then bt ", 21), COMPLETE_USAGE);
	cr_expect_eq(complete_about("att", 3), COMPLETE_COMMAND);
}

Test(complete, what_an_option_takes)
{
	struct found f;

	expect("trim --via ", "auto proxy direct");
	expect("trim --thread 47", "4711 4713");
	expect("guard --when glibc.tri", "glibc.trimmable glibc.trim_threshold");
	expect("guard --do tri", "trim");
	expect("guard --every ", "");
	expect("trim --dry-run --mi", "--min-yield");
	find(&f, "prof export x --file ");
	cr_expect(f.files);
	found_free(&f);
}

Test(complete, the_command_behind_then)
{
	expect("when rss > 1 then tri", "trim");
	expect("when rss > 1 then trim --mi", "--min-yield");
	expect("when rss > 1 then when swap > 1 then pu", "purge");
	expect("when glibc.tri", "glibc.trimmable glibc.trim_threshold");
	expect("require rss > 1 and glibc.tri", "glibc.trimmable glibc.trim_threshold");
}

Test(complete, what_prof_does)
{
	struct found f;

	expect("prof st", "status");
	expect("prof o", "on off");
	expect("prof d", "dump diff");
	expect("prof on --f", "--for --file --force");
	find(&f, "prof dump ");
	cr_expect(f.files);
	found_free(&f);
	find(&f, "prof top --file x");
	cr_expect(f.files);
	found_free(&f);
}

Test(complete, words_that_the_usage_names)
{
	expect("decay ", "dirty muzzy");
	expect("decay dirty ", "all default");
	expect("decay dirty all o", "off");
	expect("decay dirty all off ", "");
	expect("purge a", "all");
	expect("background_thread ", "on off");
}

Test(complete, settings_and_their_values)
{
	expect("set con", "confirm");
	expect("set confirm ", "on off");
	expect("set via p", "proxy");
	expect("set color a", "auto always");
	expect("set timeout ", "");
	cr_expect_not(offers("set ", "pid"));
}

Test(complete, facts)
{
	expect("facts glibc.tri", "glibc.trimmable glibc.trim_threshold");
	expect("facts rss go", "go.heap_mapped go.heap_resident");
	expect("facts xyz", "");
}

Test(complete, threads)
{
	expect("bt 47", "4711 4713");
	expect("bt ", "4711 4713 99 all");
	expect("bt 4711 ", "");
}

Test(complete, files_are_left_to_readline)
{
	struct found f;

	find(&f, "source ru");
	cr_expect(f.files);
	cr_expect_eq(f.n, 0u);
	cr_expect_eq(f.start, 7u);
	find(&f, "info --file sa");
	cr_expect(f.files);
	cr_expect_eq(f.n, 0u);
	find(&f, "diff before.hms af");
	cr_expect(f.files);
	find(&f, "snapshot be");
	cr_expect(f.files);
	expect("snapshot --fo", "--force");
}

Test(complete, garbage)
{
	static const char alphabet[] = "trim set bt-;'\"\\ ";
	unsigned seed = 9;

	for (int round = 0; round < 5000; round++) {
		char line[48];
		size_t len = (size_t)(rand_r(&seed) % (int)(sizeof(line) - 1));
		struct found f;

		for (size_t i = 0; i < len; i++)
			line[i] = alphabet[rand_r(&seed) % (int)(sizeof(alphabet) - 1)];
		line[len] = '\0';
		find(&f, line);
		cr_assert_leq(f.start, len);
		found_free(&f);
	}
}

static void expect_prompt(uint64_t rss, bool proxy, const char *want)
{
	const struct prompt p = { .comm = "redis-server", .pid = 4711, .rss = rss, .proxy = proxy };
	char got[100];

	prompt_format(&p, got, sizeof(got));
	cr_expect_str_eq(got, want);
}

Test(prompt, size_and_proxy)
{
	expect_prompt(UINT64_C(4187593113), false, "redis-server:4711 3.9G> ");
	expect_prompt(UINT64_C(4187593113), true, "redis-server:4711 3.9G proxy> ");
	expect_prompt(0, false, "redis-server:4711> ");
	expect_prompt(512 << 20, false, "redis-server:4711 512M> ");
	expect_prompt((UINT64_C(1) << 20) - 1, false, "redis-server:4711 1.0M> ");
	expect_prompt(UINT64_C(10) << 30, false, "redis-server:4711 10G> ");
	expect_prompt(UINT64_MAX, false, "redis-server:4711 16E> ");
}

Test(prompt, snapshot)
{
	const struct prompt p = {
		.comm = "redis-server", .pid = 4711, .rss = 512 << 20, .saved = true
	};
	char got[100];

	prompt_format(&p, got, sizeof(got));
	cr_expect_str_eq(got, "redis-server:4711 512M snapshot> ");
}

Test(prompt, of_a_process_that_has_exited)
{
	const struct prompt p = {
		.comm = "redis-server", .pid = 4711, .rss = 512 << 20, .saved = true, .ended = true
	};
	char got[100];

	prompt_format(&p, got, sizeof(got));
	cr_expect_str_eq(got, "redis-server:4711 512M exited> ");
}

/* What does not move the cursor stands between \1 and \2, all of it. */
Test(prompt, color_takes_no_columns)
{
	struct prompt p = { .comm = "a", .pid = 7, .rss = 512 << 20, .ended = true, .color = true };
	char got[100], seen[100];
	size_t n = 0;
	bool hidden = false;

	prompt_format(&p, got, sizeof(got));
	cr_expect_not_null(strstr(got, "\001\033[1m\002a:7\001\033[0m\002"), "%s", got);
	for (const char *s = got; *s; s++) {
		hidden = *s == '\001' || (hidden && *s != '\002');
		if (!hidden && *s != '\002')
			seen[n++] = *s;
	}
	seen[n] = '\0';
	cr_expect_str_eq(seen, "a:7 512M exited> ");
}

Test(prompt, is_cut_not_overrun)
{
	const struct prompt p = { .comm = "redis-server", .pid = 4711 };
	char got[8];

	prompt_format(&p, got, sizeof(got));
	cr_expect_str_eq(got, "redis-s");
}

Test(history, where_the_file_is)
{
	char path[64];

	cr_assert(history_path(NULL, NULL, "/root", path, sizeof(path)));
	cr_expect_str_eq(path, "/root/.local/state/heapmedic/history");
	cr_assert(history_path(NULL, "/state", "/root", path, sizeof(path)));
	cr_expect_str_eq(path, "/state/heapmedic/history");
	cr_assert(history_path(NULL, "relative", "/root", path, sizeof(path)));
	cr_expect_str_eq(path, "/root/.local/state/heapmedic/history");
	cr_assert(history_path("/tmp/h", "/state", "/root", path, sizeof(path)));
	cr_expect_str_eq(path, "/tmp/h");
	cr_expect_not(history_path("", "/state", "/root", path, sizeof(path)));
	cr_expect_not(history_path(NULL, NULL, NULL, path, sizeof(path)));
	cr_expect_not(history_path("/a/path/that/is/too/long", NULL, NULL, path, 10));
}

Test(history, what_is_kept)
{
	cr_expect(history_keeps("trim", NULL));
	cr_expect(history_keeps("trim", "check"));
	cr_expect_not(history_keeps("trim", "trim"));
	cr_expect_not(history_keeps(" secret", NULL));
	cr_expect_not(history_keeps("", NULL));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_all(const char *dir)
{
	cr_expect_eq(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A line is remembered with this home; false where no file came of it. */
static bool saves_in(const char *home)
{
	char path[200];
	struct history *h;
	struct stat st;

	unsetenv("HEAPMEDIC_HISTORY");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", home, 1);
	h = history_open();
	cr_assert_not_null(h);
	history_remember(h, "trim");
	history_close(h);
	snprintf(path, sizeof(path), "%s/.local/state/heapmedic/history", home);
	return stat(path, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_size == 5;
}

Test(history, is_kept_in_a_home_of_ours_only)
{
	char home[] = "/tmp/heapmedic-home-XXXXXX", path[100];

	cr_assert_not_null(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/none", home);
	cr_expect_not(saves_in(path));
	cr_expect_eq(access(path, F_OK), -1, "a home was made");
	snprintf(path, sizeof(path), "%s/theirs", home);
	cr_assert_eq(mkdir(path, 0777), 0);
	if (geteuid() == 0) {
		cr_assert_eq(chown(path, 65534, 65534), 0);
		cr_expect_not(saves_in(path));
		cr_expect_eq(rmdir(path), 0, "something was made in it");
	}
	cr_expect(saves_in(home));
	remove_all(home);
}

Test(history, does_not_write_into_another_files_second_name)
{
	char dir[] = "/tmp/heapmedic-link-XXXXXX", file[100], name[100];
	struct history *h;
	struct stat st;
	int fd;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(name, sizeof(name), "%s/history", dir);
	fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0644);
	cr_assert_geq(fd, 0);
	cr_assert_eq(close(fd) || link(file, name), 0);
	setenv("HEAPMEDIC_HISTORY", name, 1);
	h = history_open();
	history_remember(h, "trim");
	history_close(h);
	cr_assert_eq(stat(file, &st), 0);
	cr_expect_eq(st.st_size, 0);
	cr_expect_eq(st.st_mode & 0777, 0644);
	remove_all(dir);
}
