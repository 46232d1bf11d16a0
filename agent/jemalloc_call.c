// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../inject/mem.h"
#include "../inject/status.h"
#include "jemalloc_missing.h"

int jemalloc_symbol(const struct allocator *a, const char *name, uint64_t *addr, struct diag *d)
{
	char full[64];
	struct symbol s;

	if (a->reach)
		return jemalloc_unreachable(a, d);
	snprintf(full, sizeof(full), "%s%s", a->prefix, name);
	if (module_function(a->mod, full, &s) < 0)
		return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol",
				 "`check` shows which allocators the target has",
				 "the target's jemalloc has no symbol %s", full);
	*addr = s.addr;
	return 0;
}

/* The last four arguments, from arg on. */
static int prepare(struct session *s, const struct ctl_io *io, uint64_t *arg, struct ctl_call *out)
{
	*out = (struct ctl_call){ 0 };
	if (io->read) {
		out->old = session_alloc(s, 8);
		out->old_len = session_alloc(s, sizeof(*out->old_len));
		if (!out->old || !out->old_len)
			return -ENOMEM;
		*out->old_len = io->size;
		arg[0] = session_addr(s, out->old);
		arg[1] = session_addr(s, out->old_len);
	}
	if (io->write) {
		out->new = session_alloc(s, 8);
		if (!out->new)
			return -ENOMEM;
		arg[2] = session_addr(s, out->new);
		arg[3] = io->size;
	}
	return 0;
}

int ctl_call_name(struct session *s, uint64_t fn, const char *name, const struct ctl_io *io,
		  struct call *c, struct ctl_call *out)
{
	size_t len = strlen(name) + 1;
	char *text = session_alloc(s, len);

	if (!text)
		return -ENOMEM;
	memcpy(text, name, len);
	*c = (struct call){ .fn = fn, .arg = { session_addr(s, text) } };
	return prepare(s, io, c->arg + 1, out);
}

int ctl_call_mib(struct session *s, uint64_t fn, const uint64_t *mib, unsigned n,
		 const struct ctl_io *io, struct call *c, struct ctl_call *out)
{
	uint64_t *copy = session_alloc(s, n * sizeof(*mib));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, mib, n * sizeof(*mib));
	*c = (struct call){ .fn = fn, .arg = { session_addr(s, copy), n } };
	return prepare(s, io, c->arg + 2, out);
}

int ctl_call_place(struct session *s, const struct ctl_value *v, const struct ctl_call *io)
{
	uint64_t addr;
	char *text;

	if (v->type != CTL_STRING)
		return ctl_value_encode(v, io->new);
	text = session_alloc(s, strlen(v->text) + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, v->text, strlen(v->text) + 1);
	addr = session_addr(s, text);
	memcpy(io->new, &addr, sizeof(addr));
	return 0;
}

int ctl_call_take(const struct process *p, enum ctl_type type, const struct ctl_call *io,
		  struct ctl_value *out)
{
	char raw[sizeof(out->text)];
	uint64_t addr;
	int rc;

	*out = (struct ctl_value){ .type = type };
	if (*io->old_len != ctl_size(type))
		return -EPROTO;
	if (type != CTL_STRING)
		return ctl_value_decode(type, io->old, out);
	memcpy(&addr, io->old, sizeof(addr));
	if (!addr)
		return 0;
	rc = mem_read_str(p->t.pid, addr, raw, sizeof(raw));
	if (rc == -ENAMETOOLONG)
		raw[sizeof(raw) - 1] = '\0';
	else if (rc)
		return -EFAULT;
	escape_copy(out->text, sizeof(out->text), raw, strlen(raw));
	return 0;
}
