// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbol_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/elf_range.h"
#include "dwarf_lines.h"
#include "sandbox.h"

#define NAME_MAX_LEN 16383
#define FILE_MAX_LEN 4095
#define FRAMES_MAX   64

/* What goes through the pipe: a head, then for each frame its own head and its two strings. */
struct head {
	uint32_t i;
	uint16_t frames;
	uint16_t unscoped;
};

struct frame_head {
	uint32_t line;
	uint16_t name, file; /* lengths */
	uint16_t inlined, unused;
};

struct job {
	int fd, alt_fd;
	const uint64_t *at;
	size_t n;
	bool places;
	struct sandbox_out *out;
};

bool symbol_lines_there(struct elf_file *e)
{
	struct elf_range r;

	return !elf_file_range(e, ".debug_info", &r, NULL) ||
	       !elf_file_range(e, ".zdebug_info", &r, NULL);
}

static uint16_t name_len(const char *s)
{
	size_t len = s ? strnlen(s, NAME_MAX_LEN + 1) : 0;

	return len <= NAME_MAX_LEN ? (uint16_t)len : 0;
}

/* The path of the source file, whole; 0 if it is too long or not known. */
static uint16_t path_of(const struct dwarf_frame *f, char *buf)
{
	size_t dir = f->dir && f->file && f->dir[0] == '/' && f->file[0] != '/'
			     ? strnlen(f->dir, FILE_MAX_LEN)
			     : 0;
	size_t len = f->file ? strnlen(f->file, FILE_MAX_LEN + 1) : 0;

	while (dir > 1 && f->dir[dir - 1] == '/')
		dir--;
	if (!len || dir + 1 + len > FILE_MAX_LEN)
		return 0;
	if (dir) {
		memcpy(buf, f->dir, dir);
		buf[dir++] = '/';
	}
	memcpy(buf + dir, f->file, len);
	return (uint16_t)(dir + len);
}

/* In the child. */
static int send(size_t i, const struct dwarf_frame *v, size_t n, void *arg)
{
	struct job *job = arg;
	struct head h = { .i = (uint32_t)i,
			  .frames = (uint16_t)n,
			  .unscoped = n && v[n - 1].unscoped };
	char path[FILE_MAX_LEN];
	size_t k;

	sandbox_write(job->out, &h, sizeof(h));
	for (k = 0; k < n; k++) {
		struct frame_head f = {
			.line = v[k].line,
			.name = name_len(v[k].name),
			.file = path_of(&v[k], path),
			.inlined = v[k].inlined,
		};

		sandbox_write(job->out, &f, sizeof(f));
		sandbox_write(job->out, v[k].name, f.name);
		sandbox_write(job->out, path, f.file);
	}
	return 0;
}

static int work(struct sandbox_out *out, void *arg)
{
	struct job *job = arg;

	job->out = out;
	return dwarf_lines_find(job->fd, job->alt_fd, job->at, job->n, job->places, send, job);
}

static int room(struct symbol_lines *out)
{
	size_t cap = out->cap ? 2 * out->cap : 1024;
	struct symbol_frame *v;

	if (out->frames < out->cap)
		return 0;
	v = out->frames < UINT32_MAX / 2 ? realloc(out->frame, cap * sizeof(*v)) : NULL;
	if (!v)
		return -ENOMEM;
	out->frame = v;
	out->cap = cap;
	return 0;
}

static int receive_frame(struct sandbox *s, struct names *names, struct symbol_lines *out)
{
	char text[NAME_MAX_LEN + FILE_MAX_LEN + 2];
	struct frame_head f;
	int err = sandbox_read(s, &f, sizeof(f));

	if (!err && (f.name > NAME_MAX_LEN || f.file > FILE_MAX_LEN))
		err = -EBADMSG;
	if (!err && f.name + f.file)
		err = sandbox_read(s, text, (size_t)f.name + f.file);
	if (!err)
		err = room(out);
	if (err)
		return err;
	out->frame[out->frames++] = (struct symbol_frame){
		.name = f.name ? names_add(names, text, f.name) : NULL,
		.file = f.file ? names_add(names, text + f.name, f.file) : NULL,
		.line = f.line,
		.inlined = f.inlined != 0,
	};
	return 0;
}

/* What the child says is believed as little as the file. */
static int receive(struct sandbox *s, size_t n, struct names *names, struct symbol_lines *out)
{
	struct symbol_line line;
	struct head h;
	size_t k;
	int err;

	for (;;) {
		err = sandbox_read(s, &h, sizeof(h));
		if (err)
			return err == -ENODATA ? 0 : err;
		if (h.i >= n || !h.frames || h.frames > FRAMES_MAX || out->at[h.i].frames)
			return -EBADMSG;
		line = (struct symbol_line){ (uint32_t)out->frames, h.frames, h.unscoped != 0 };
		for (k = 0; k < h.frames && !err; k++)
			err = receive_frame(s, names, out);
		if (err)
			return err == -ENODATA ? -EBADMSG : err;
		out->at[h.i] = line;
	}
}

int symbol_lines_find(const struct elf_file *e, const struct elf_file *alt, const uint64_t *at,
		      size_t n, bool places, struct names *names, struct symbol_lines *out)
{
	struct job job = { .fd = elf_file_fd(e), .alt_fd = -1, .at = at, .n = n, .places = places };
	int keep[2] = { job.fd }, err;
	struct sandbox s;

	*out = (struct symbol_lines){ .at = calloc(n + 1, sizeof(*out->at)) };
	if (!out->at)
		return -ENOMEM;
	if (alt)
		job.alt_fd = keep[1] = elf_file_fd(alt);
	err = sandbox_start(work, &job, keep, alt ? 2 : 1, &s);
	if (err)
		return err;
	err = receive(&s, n, names, out);
	if (!sandbox_end(&s) && !err)
		err = -EBADMSG;
	return err;
}

void symbol_lines_free(struct symbol_lines *l)
{
	free(l->at);
	free(l->frame);
	*l = (struct symbol_lines){ 0 };
}
