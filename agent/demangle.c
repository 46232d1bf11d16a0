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
	bool full, rust;
	jmp_buf stop;
};

static bool is_ascii(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80)
			return false;
	return true;
}

/*
 * A hundred characters can stand for a gigabyte, as each part may refer to those before it twice.
 * There is no way to say stop but this one: libiberty's callback interface keeps everything on the
 * stack, with one exception. A Rust identifier that is not ASCII is given from a block that is
 * freed right after (rust-demangle.c, print_ident), and the mangled form is all ASCII: so such a
 * piece is let pass, and the next, which is one between two identifiers, is the last.
 */
static void take(const char *s, size_t len, void *arg)
{
	struct text *t = arg;

	if (!len)
		return;
	if (t->full || len >= t->size - t->len) {
		t->full = true;
		if (!t->rust || is_ascii(s, len))
			longjmp(t->stop, 1);
		return;
	}
	memcpy(t->buf + t->len, s, len);
	t->len += len;
}

static bool run(const char *name, int options, struct text *t)
{
	if (setjmp(t->stop))
		return false;
	/* Rust's legacy form is one of C++ too, with its hash as the last part. */
	t->rust = true;
	if (rust_demangle_callback(name, options, take, t))
		return !t->full;
	t->len = 0;
	t->full = t->rust = false;
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
