// SPDX-License-Identifier: GPL-3.0-or-later
#include "view.h"

#include <errno.h>

#include "../agent/snapshot.h"

int view_look(struct context *c, bool may_call, struct look *own, const struct look **out,
	      struct diag *d)
{
	*out = c->loaded ? &c->loaded->look : own;
	return c->loaded ? 0 : look_take(c->process, may_call && !c->set.passive, own, d);
}

int view_memory(struct context *c, struct memory *own, const struct memory **out, struct diag *d)
{
	*out = c->loaded ? &c->loaded->look.memory : own;
	return c->loaded ? 0 : memory_read(c->process, own, d);
}

int view_threads(struct context *c, struct thread_rows *own, const struct thread_rows **out,
		 struct diag *d)
{
	*out = c->loaded ? &c->loaded->threads : own;
	return c->loaded ? 0 : thread_rows_read(c->process, own, d);
}

static int loaded_arenas(const struct snapshot *s, const struct glibc_arenas **out, struct diag *d)
{
	*out = &s->look.arenas;
	if (s->look.glibc)
		return s->look.arenas.plan.arenas ? 0 : -ENODATA;
	*d = s->look.glibc_unread.exit ? s->look.glibc_unread : s->no_arenas;
	return -ENOTSUP;
}

int view_arenas(struct context *c, struct glibc_arenas *own, const struct glibc_arenas **out,
		struct diag *d)
{
	const struct allocator *glibc;

	if (c->loaded)
		return loaded_arenas(c->loaded, out, d);
	*out = own;
	glibc = process_allocator(c->process, "glibc");
	return glibc ? glibc_arenas_read(c->process, glibc, own, d)
		     : glibc_arenas_none(c->process, d);
}

static void note_arenas(struct context *c, const struct jemalloc_arenas *a)
{
	c->arenas = 0;
	for (size_t i = 0; i < a->n && c->arenas < CONTEXT_ARENAS; i++)
		c->arena[c->arenas++] = a->v[i].index;
}

int view_jemalloc(struct context *c, const struct allocator *a, struct jemalloc_arenas *own,
		  const struct jemalloc_arenas **out, struct diag *d)
{
	int err;

	if (c->loaded) {
		*out = &c->loaded->jemalloc_arenas;
		return (*out)->n ? 0 : jemalloc_arenas_unasked(c->loaded->look.jemalloc_unasked, d);
	}
	*out = own;
	if (c->set.passive || !a)
		return jemalloc_arenas_unasked(LOOK_NOT_ASKED, d);
	err = jemalloc_arenas_read(c->process, a, own, d);
	if (!err)
		note_arenas(c, own);
	return err;
}

const struct allocators *view_allocators(const struct context *c)
{
	return c->loaded ? &c->loaded->allocs : &c->process->allocs;
}
