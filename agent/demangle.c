// SPDX-License-Identifier: GPL-3.0-or-later
#include "demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* libiberty refuses names of which twice the length is more (cp-demangle.c, rust-demangle.c). */
#define NAME_LEN_MAX (DEMANGLE_RECURSION_LIMIT / 2)

struct text {
	char *buf;
	size_t size, len;
	jmp_buf full;
};

/*
 * A hundred characters can stand for a gigabyte, as each part may refer to those before it twice.
 * There is no way to say stop but this one: libiberty's callback interface keeps everything on the
 * stack.
 */
static void take(const char *s, size_t len, void *arg)
{
	struct text *t = arg;

	if (!len)
		return;
	if (len >= t->size - t->len)
		longjmp(t->full, 1);
	memcpy(t->buf + t->len, s, len);
	t->len += len;
}

static bool run(const char *name, int options, struct text *t)
{
	if (setjmp(t->full))
		return false;
	t->len = 0;
	/* Rust's legacy form is one of C++ too, with its hash as the last part. */
	if (rust_demangle_callback(name, options, take, t))
		return true;
	t->len = 0;
	return cplus_demangle_v3_callback(name, options, take, t) != 0;
}

static bool may_be_mangled(const char *name)
{
	name += strspn(name, "_");
	return name[0] == 'Z' || name[0] == 'R';
}

bool demangle(const char *name, bool brief, char *buf, size_t size)
{
	struct text t = { .buf = buf, .size = size };
	size_t len = strnlen(name, NAME_LEN_MAX + 1);

	if (!size)
		return false;
	if (len <= NAME_LEN_MAX && name[0] == '_' && may_be_mangled(name) &&
	    run(name, brief ? DMGL_NO_OPTS : DMGL_PARAMS | DMGL_ANSI, &t)) {
		buf[t.len] = 0;
		return true;
	}
	len = strnlen(name, size - 1);
	memcpy(buf, name, len);
	buf[len] = 0;
	return false;
}
