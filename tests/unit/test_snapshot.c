// SPDX-License-Identifier: GPL-3.0-or-later
/* What is written is what is read; and whatever is read, it is an answer or an error. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../../agent/snapshot.h"
#include "../../agent/snapshot_fields.h"
#include "../../agent/snapshot_text.h"
#include "made_up.h"

struct file {
	unsigned char *bytes;
	size_t len;
};

static void encode(const struct snapshot *s, struct file *f)
{
	cr_assert_eq(snapshot_encode(s, &f->bytes, &f->len), 0);
}

/* The text of a made-up one, terminated. */
static char *made_up_text(size_t *len)
{
	struct snapshot s;
	struct file f;
	struct diag d;
	char *text;

	made_up(&s);
	encode(&s, &f);
	cr_assert_eq(snapshot_inflate(f.bytes, f.len, "x", &text, len, &d), 0, "%s", d.text);
	text = realloc(text, *len + 1);
	cr_assert(text);
	text[*len] = '\0';
	free(f.bytes);
	made_up_free(&s);
	return text;
}

static void expect_error(int err, const struct diag *d, const char *code, const char *text)
{
	cr_assert_lt(err, 0, "no error, %s was expected", code);
	cr_assert_eq(d->exit, HM_USAGE, "%s", d->text);
	cr_assert_str_eq(d->code, code, "%s: %s", d->code, d->text);
	cr_assert(strstr(d->text, text), "%s", d->text);
	cr_assert(d->hint[0]);
}

static void refuse(const char *text, const char *code, const char *what)
{
	struct snapshot s;
	struct diag d;

	diag_clear(&d);
	expect_error(snapshot_parse(text, strlen(text), "a.hms", &s, &d), &d, code, what);
}

/* ---- both ways */

Test(snapshot, every_member_comes_back)
{
	struct snapshot s, back;
	struct file f, again;
	struct diag d;

	made_up(&s);
	encode(&s, &f);
	cr_assert_eq(snapshot_decode(f.bytes, f.len, "x", &back, &d), 0, "%s", d.text);
	made_up_same(&s, &back);
	cr_assert(back.look.jemalloc && !strcmp(back.look.jemalloc->ops->name, "jemalloc"));
	encode(&back, &again);
	cr_assert(f.len == again.len && !memcmp(f.bytes, again.bytes, f.len));
	cr_assert(snapshot_same_process(&s, &back));
	back.start_time++;
	cr_assert(!snapshot_same_process(&s, &back));
	free(f.bytes);
	free(again.bytes);
	snapshot_free(&back);
	made_up_free(&s);
}

/* Nothing is set that need not be: what is left out comes back as nothing. */
Test(snapshot, an_empty_one_comes_back)
{
	struct snapshot s = { .allocs.n = 0 }, back;
	struct file f;
	struct diag d;

	encode(&s, &f);
	cr_assert_eq(snapshot_decode(f.bytes, f.len, "x", &back, &d), 0, "%s", d.text);
	made_up_same(&s, &back);
	free(f.bytes);
	snapshot_free(&back);
}

/* Strings that may be missing, and one that is longer escaped than there is room for. */
Test(snapshot, texts)
{
	struct snapshot s, back;
	struct file f;
	struct diag d;

	made_up(&s);
	s.look.memory.owners.v[0].kind = "";
	s.threads.v[0].t.reason = NULL;
	s.look.memory.smaps.v[1].map.name = "";
	memset(s.comm, '\033', sizeof(s.comm) - 1);
	encode(&s, &f);
	cr_assert_eq(snapshot_decode(f.bytes, f.len, "x", &back, &d), 0, "%s", d.text);
	cr_assert_str_eq(back.look.memory.owners.v[0].kind, "");
	cr_assert_null(back.threads.v[0].t.reason);
	cr_assert_str_eq(back.look.memory.smaps.v[1].map.name, "");
	cr_assert_eq(strncmp(back.comm, "\\x1b\\x1b", 8), 0, "%s", back.comm);
	cr_assert_eq(strlen(back.comm), sizeof(back.comm) - 1);
	free(f.bytes);
	snapshot_free(&back);
	made_up_free(&s);
}

/* ---- no member of a struct is forgotten */

#define STRUCT_MAX 65536
static unsigned char covered[STRUCT_MAX];

/* Members of the structs that are left out, and why. */
static const struct {
	const char *in;
	size_t offset, size;
} left_out[] = {
	/* a row of a table of ours */
	{ "parameters", offsetof(struct glibc_par, row), sizeof(void *) },
	/* for whoever reads the same heap again */
	{ "list", offsetof(struct glibc_arena_plan, stamp), sizeof(uint64_t) },
	{ "total", offsetof(struct glibc_arena_plan, stamp), sizeof(uint64_t) },
	/* where the module is: nothing of a process that may be gone */
	{ "allocators", offsetof(struct allocator, mod), sizeof(void *) },
	/* what the names are in; made again of the pieces; what only told the owners apart */
	{ "memory", offsetof(struct memory, smaps.names), sizeof(void *) },
	{ "memory", offsetof(struct memory, mounts),
	  offsetof(struct memory, owners) - offsetof(struct memory, mounts) },
	{ "memory", offsetof(struct memory, owners.cap), sizeof(size_t) },
	{ "memory", offsetof(struct memory, owners.total), sizeof(struct amounts) },
	{ "memory", offsetof(struct memory, remainder), sizeof(int64_t) },
	/* the snapshot's own time; the sum over its arenas */
	{ "jemalloc_arenas", offsetof(struct jemalloc_arenas, fresh.at), sizeof(struct timespec) },
	{ "jemalloc_arenas", offsetof(struct jemalloc_arenas, total),
	  sizeof(struct jemalloc_arena) },
	/* found again among the allocators */
	{ "look", offsetof(struct look, jemalloc), sizeof(void *) },
	{ "look", offsetof(struct look, tcmalloc.a), sizeof(void *) },
	{ "look", offsetof(struct look, mimalloc.a), sizeof(void *) },
	/* what is needed to hold a thread; arguments of its call are the program's data */
	{ "threads", offsetof(struct thread_row, t.arg),
	  offsetof(struct thread_row, t.has_arena) - offsetof(struct thread_row, t.arg) },
	{ "threads", offsetof(struct thread_row, t.rank), sizeof(int) },
};

static void cover(const struct field *f, const char *in, size_t size)
{
	size_t run = 0;

	cr_assert_leq(size, STRUCT_MAX, "%s", in);
	memset(covered, 0, size);
	for (const struct field *m = f; m->name; m++) {
		size_t n = m->kind == FIELD_LIST    ? sizeof(void *)
			   : m->kind == FIELD_ARRAY ? m->size * m->max
						    : m->size;

		memset(covered + m->offset, 1, n);
		if (m->kind == FIELD_LIST || m->kind == FIELD_ARRAY)
			memset(covered + m->count, 1, sizeof(size_t));
	}
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (!strcmp(left_out[i].in, in))
			memset(covered + left_out[i].offset, 1, left_out[i].size);
	/* less than a word may be padding */
	for (size_t i = 0; i < size; i++) {
		run = covered[i] ? 0 : run + 1;
		cr_assert_lt(run, 8, "%s: what is at byte %zu is in no table", in, i);
	}
	for (const struct field *m = f; m->name; m++)
		if (m->sub)
			cover(m->sub, m->name, m->size);
}

Test(snapshot, no_member_is_forgotten)
{
	cover(snapshot_fields, "snapshot", offsetof(struct snapshot, pool));
}

/* ---- the bytes */

Test(snapshot, a_cut_or_changed_file_is_an_error)
{
	struct snapshot s, back;
	struct file f;
	struct diag d;

	made_up(&s);
	encode(&s, &f);
	for (size_t len = 0; len < f.len; len += len < 40 ? 1 : 97) {
		diag_clear(&d);
		expect_error(snapshot_decode(f.bytes, len, "a.hms", &back, &d), &d,
			     len < 2 ? "no-snapshot" : "damaged-snapshot", "a.hms");
	}
	for (size_t i = 10; i < f.len; i += 61) {
		f.bytes[i] ^= 0x10;
		diag_clear(&d);
		expect_error(snapshot_decode(f.bytes, f.len, "a.hms", &back, &d), &d,
			     "damaged-snapshot", "a.hms");
		f.bytes[i] ^= 0x10;
	}
	f.bytes = realloc(f.bytes, f.len + 1);
	cr_assert(f.bytes);
	f.bytes[f.len] = 0;
	expect_error(snapshot_decode(f.bytes, f.len + 1, "a.hms", &back, &d), &d,
		     "damaged-snapshot", "something follows its end");
	free(f.bytes);
	made_up_free(&s);
}

static void squeeze(const char *text, size_t len, size_t times, struct file *f)
{
	z_stream z = { 0 };

	f->len = 1 << 20;
	f->bytes = malloc(f->len);
	cr_assert(f->bytes);
	cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = f->bytes;
	z.avail_out = (unsigned)f->len;
	for (size_t i = 0; i < times; i++) {
		z.next_in = (unsigned char *)(uintptr_t)text;
		z.avail_in = (unsigned)len;
		cr_assert_eq(deflate(&z, Z_NO_FLUSH), Z_OK);
	}
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	f->len -= z.avail_out;
	deflateEnd(&z);
}

Test(snapshot, a_bomb_is_refused)
{
	static char zeros[1 << 20];
	struct snapshot s;
	struct file f;
	struct diag d;

	diag_clear(&d);
	squeeze(zeros, sizeof(zeros), 300, &f);
	cr_assert_lt(f.len, 400 * 1024);
	expect_error(snapshot_decode(f.bytes, f.len, "a.hms", &s, &d), &d, "snapshot-too-large",
		     "256 MiB");
	free(f.bytes);
}

/* Few bytes of text, much memory: 40 MiB of lists would be gigabytes. */
Test(snapshot, a_tree_that_is_too_large_is_refused)
{
	size_t len = (size_t)40 << 20;
	char *text = malloc(len);
	struct snapshot s;
	struct diag d;

	cr_assert(text);
	diag_clear(&d);
	text[0] = '[';
	for (size_t i = 1; i + 3 < len; i += 3)
		memcpy(text + i, "{},", 3);
	expect_error(snapshot_parse(text, len - 3, "a.hms", &s, &d), &d, "snapshot-too-large",
		     "members");
	free(text);
}

/* ---- the text */

Test(snapshot, what_is_none)
{
	struct snapshot s;
	struct diag d;

	refuse("", "damaged-snapshot", "a.hms");
	refuse("{}", "no-snapshot", "is no snapshot");
	refuse("[]", "no-snapshot", "is no snapshot");
	refuse("{\"schema\":\"heapmedic/1\"}", "no-snapshot", "is no snapshot");
	refuse("{\"schema\":1}", "no-snapshot", "is no snapshot");
	refuse("{\"schema\":\"heapmedic-snapshot/\"}", "no-snapshot", "is no snapshot");
	refuse("{\"schema\":\"heapmedic-snapshot/0\"}", "no-snapshot", "is no snapshot");
	refuse("{\"schema\":\"heapmedic-snapshot/1x\"}", "no-snapshot", "is no snapshot");
	refuse("{\"schema\":\"heapmedic-snapshot/2\"}", "newer-snapshot", "format 2");
	refuse("{\"schema\":\"heapmedic-snapshot/1\"}", "damaged-snapshot", "is no object");
	refuse("{\"schema\":\"heapmedic-snapshot/1\",\"snapshot\":{}}", "damaged-snapshot",
	       "time is missing");
	refuse("{\"a\":1,\"a\":2}", "damaged-snapshot", "duplicate");
	diag_clear(&d);
	expect_error(snapshot_decode((const unsigned char *)"#!/bin/sh\n", 10, "a.hms", &s, &d), &d,
		     "no-snapshot", "is no snapshot");
}

Test(snapshot, deep_nesting_is_an_error)
{
	char text[2048];

	memset(text, '[', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	refuse(text, "damaged-snapshot", "too deep");
}

/* Replaces the first "from" that follows "after". */
static void refuse_changed(const char *after, const char *from, const char *to, const char *what)
{
	size_t len, at;
	char *text = made_up_text(&len), *place = strstr(text, after), *changed;

	cr_assert(place, "%s", after);
	place = strstr(place, from);
	cr_assert(place, "%s", from);
	at = (size_t)(place - text);
	cr_assert_gt(asprintf(&changed, "%.*s%s%s", (int)at, text, to, place + strlen(from)), 0);
	refuse(changed, "damaged-snapshot", what);
	free(changed);
	free(text);
}

Test(snapshot, what_is_wrong_is_named)
{
	refuse_changed("\"pieces\"", "\"owner\":\"", "\"owner\":\"who",
		       "look.memory.pieces[0].owner");
	refuse_changed("\"pieces\"", "\"mapping\":0", "\"mapping\":3", "pieces[0].mapping is 3");
	refuse_changed("\"pieces\"", "\"start\":\"0x", "\"start\":\"", "is no address");
	refuse_changed("\"mappings\"", "\"end\":\"0x200000\"", "\"end\":\"0x0\"", "out of order");
	refuse_changed("\"mappings\"", "\"start\":\"0x200000\"", "\"start\":\"0x100\"",
		       "out of order");
	refuse_changed("\"pieces\"", "\"start\":\"0x100000\"", "\"start\":\"0xff000\"",
		       "out of order");
	refuse_changed("\"pieces\"",
		       "\"resident\":", "\"resident\":1152921504606846977,\"x\":", "more than");
	refuse_changed("\"usage\"", "\"rss\":", "\"rss\":\"18446744073709551616\",\"x\":",
		       "usage.rss is no number");
	refuse_changed("\"time\"", "Z\"", "\"", "time is no time");
	refuse_changed("\"comm\"", "\\\"", "\\u001b", "comm has a character");
	refuse_changed("\"mappings\"", "\\\\x01", "\\\\q01", "name has a \\");
	refuse_changed("\"mappings\"", "\\\\x01", "\\\\x00", "name has a \\");
	refuse_changed("\"advice\"", "[", "[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},",
		       "are the most");
	refuse_changed("\"facts\"", "\"origin\":\"", "\"origin\":\"x", "look.facts.rss");
	refuse_changed("\"threads\"",
		       "\"tid\":", "\"tid\":9999999999,\"x\":", "more than there can be");
	refuse_changed("\"pressure_some\"", ":", ":-", "is no number from 0");
}

static void try_text(const json_t *root)
{
	char *text = json_dumps(root, JSON_COMPACT);
	struct snapshot s;
	struct diag d;

	cr_assert(text);
	diag_clear(&d);
	if (snapshot_parse(text, strlen(text), "a.hms", &s, &d) == 0) {
		struct file f;

		encode(&s, &f);
		free(f.bytes);
		snapshot_free(&s);
	} else {
		cr_assert_eq(d.exit, HM_USAGE, "%s", d.text);
		cr_assert(d.text[0] && d.hint[0]);
	}
	free(text);
}

static size_t changes;

#define KEYS_MAX 64
/* A member that was deleted comes back as the last: a walk over them would never end. */
static size_t keys_of(const json_t *o, char *key[KEYS_MAX])
{
	size_t n = 0;
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, name, v)
	{
		cr_assert_lt(n, KEYS_MAX);
		key[n++] = strdup(name);
	}
	return n;
}

/* Each value of the tree by each of another kind, and not at all. */
static void change_each(const json_t *root, json_t *at)
{
	static const char *const others[] = { "null",	     "true", "-1",
					      "1e300",	     "[]",   "{}",
					      "\"\\u0007\"", "[[]]", "\"18446744073709551615\"" };
	char *key[KEYS_MAX];
	size_t n = keys_of(at, key);

	for (size_t k = 0; k < n; k++) {
		json_t *v = json_incref(json_object_get(at, key[k]));

		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			json_t *other = json_loads(others[i], JSON_DECODE_ANY, NULL);

			cr_assert_eq(json_object_set_new(at, key[k], other), 0);
			try_text(root);
			changes++;
		}
		json_object_del(at, key[k]);
		try_text(root);
		cr_assert_eq(json_object_set(at, key[k], v), 0);
		change_each(root, v);
		json_decref(v);
		free(key[k]);
	}
	/* the others of a list are like the first */
	if (json_array_size(at) > 0)
		change_each(root, json_array_get(at, 0));
}

Test(snapshot, any_member_may_be_anything, .timeout = 300)
{
	size_t len;
	char *text = made_up_text(&len);
	json_t *root = json_loadb(text, len, 0, NULL);

	cr_assert(root);
	change_each(root, root);
	cr_assert_gt(changes, 1000);
	json_decref(root);
	free(text);
}

/* ---- files */

static char dir[64], path[128];

static void make_dir(void)
{
	strcpy(dir, "/tmp/heapmedic-test-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.hms", dir);
}

static size_t files_in_dir(void)
{
	char command[160];
	size_t n = 0;
	FILE *p;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", dir);
	p = popen(command, "r");
	cr_assert(p && fscanf(p, "%zu", &n) == 1);
	pclose(p);
	return n;
}

static void remove_dir(void)
{
	unlink(path);
	cr_assert_eq(rmdir(dir), 0, "something is left in %s: %s", dir, strerror(errno));
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

Test(snapshot_file, written_whole_and_for_the_owner_only)
{
	struct snapshot s, back;
	struct stat st;
	struct file f;
	struct diag d;

	make_dir();
	made_up(&s);
	encode(&s, &f);
	/* also over an older one */
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(snapshot_save(path, f.bytes, f.len, false, &d), 0, "%s", d.text);
		cr_assert_eq(stat(path, &st), 0);
		cr_assert_eq(st.st_mode & 07777, 0600);
		cr_assert_eq((size_t)st.st_size, f.len);
		cr_assert_eq(files_in_dir(), 1);
	}
	cr_assert_eq(snapshot_load(path, &back, &d), 0, "%s", d.text);
	made_up_same(&s, &back);
	snapshot_free(&back);
	free(f.bytes);
	made_up_free(&s);
	remove_dir();
}

static void expect_unsaved(const char *to, bool force, enum hm_exit exit, const char *text)
{
	struct diag d;

	diag_clear(&d);
	cr_assert_lt(snapshot_save(to, (const unsigned char *)"x", 1, force, &d), 0);
	cr_assert_eq(d.exit, exit, "%s", d.text);
	cr_assert(strstr(d.text, text), "%s", d.text);
	cr_assert(d.hint[0]);
}

Test(snapshot_file, nothing_of_others_is_replaced)
{
	char link[160];
	struct diag d;

	make_dir();
	write_file("precious");
	expect_unsaved(path, false, HM_USAGE, "is no snapshot");
	write_file("\x1f\x8b also no gzip");
	expect_unsaved(path, false, HM_USAGE, "is no snapshot");
	cr_assert_eq(files_in_dir(), 1);
	snprintf(link, sizeof(link), "%s/link", dir);
	cr_assert_eq(symlink(path, link), 0);
	expect_unsaved(link, true, HM_USAGE, "no regular file");
	cr_assert_eq(unlink(link), 0);
	expect_unsaved("/dev/null", true, HM_USAGE, "no regular file");
	expect_unsaved(dir, true, HM_USAGE, "no regular file");
	cr_assert_eq(snapshot_save(path, (const unsigned char *)"x", 1, true, &d), 0, "%s", d.text);
	remove_dir();
}

Test(snapshot_file, where_nothing_can_be_written)
{
	struct rlimit small = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY }, before;
	char elsewhere[160];

	make_dir();
	snprintf(elsewhere, sizeof(elsewhere), "%s/no/such/place", dir);
	expect_unsaved(elsewhere, false, HM_CALL_FAILED, "No such file");
	expect_unsaved("", false, HM_CALL_FAILED, "No such file");
	/* as on a full disk: no byte can be written */
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	expect_unsaved(path, false, HM_CALL_FAILED, "File too large");
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	cr_assert_eq(files_in_dir(), 0);
	remove_dir();
}

static void expect_unread(const char *from, const char *code, const char *text)
{
	struct snapshot s;
	struct diag d;

	diag_clear(&d);
	expect_error(snapshot_load(from, &s, &d), &d, code, text);
}

Test(snapshot_file, what_cannot_be_read)
{
	make_dir();
	expect_unread(path, "cannot-read", "No such file");
	expect_unread(dir, "cannot-read", "directory");
	expect_unread("/dev/null", "no-snapshot", "/dev/null");
	write_file("text");
	expect_unread(path, "no-snapshot", path);
	remove_dir();
}
