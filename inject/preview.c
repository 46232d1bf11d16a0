// SPDX-License-Identifier: GPL-3.0-or-later
#include "preview.h"

#include <errno.h>
#include <stdlib.h>

#include "borrow.h"
#include "codemap.h"
#include "safepoint.h"
#include "sigframe.h"
#include "unwind.h"

/* Each costs a look through its stack; nobody reads about more. */
#define LOOKS_MAX 256

static void look_at_each(struct safepoint *s, struct threads *list)
{
	for (size_t i = 0; i < list->n && i < LOOKS_MAX; i++) {
		struct thread *th = &list->v[i];

		/* while it runs nothing is known of it */
		if (!th->usable || !th->sp)
			continue;
		if (safepoint_preview(s, th->sp, th->pc, th->tcb) == -EAGAIN && s->why)
			threads_refuse(th, s->why);
	}
	threads_sort(list);
}

int preview_threads(const struct target *t, const struct maps *maps, const struct modules *mods,
		    struct threads *list)
{
	struct code_map *code = NULL;
	struct unwinder *unwinder = NULL;
	struct xsave_facts xsave;
	struct pages pages = { .fd = -1 };
	struct safepoint s = { .pid = t->pid,
			       .maps = maps,
			       .forbid = CODE_ALLOC | CODE_LOADER | CODE_THREADS,
			       .buf = malloc(SAFEPOINT_BUF) };
	int rc = s.buf ? xsave_facts_read(&xsave) : -ENOMEM;

	if (pages_open(t, &pages) == 0) {
		pages.brief = true;
		s.pages = &pages;
	}
	if (rc == 0)
		rc = code_map_build(mods, &code);
	if (rc == 0)
		rc = unwinder_new(t->pid, mods, &unwinder);
	if (rc == 0) {
		s.need = borrow_stack_need(xsave.xstate_size);
		s.code = code;
		s.unwinder = unwinder;
		look_at_each(&s, list);
	}
	unwinder_free(unwinder);
	code_map_free(code);
	if (s.pages)
		pages_close(&pages);
	free(s.buf);
	return rc;
}
