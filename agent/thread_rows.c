// SPDX-License-Identifier: GPL-3.0-or-later
#include "thread_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "../inject/phase.h"
#include "../inject/preview.h"

/* Without the right to attach, what a thread does cannot be read either: it is not "running". */
static void forbid_all(struct threads *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].usable) {
			list->v[i].usable = false;
			list->v[i].reason = "not permitted, see `check`";
		}
}

/* What each has of glibc's heap; without the right to read it, or its malloc, nothing is known. */
static int read_heap(const struct process *p, struct threads *list, struct glibc_thread *heap,
		     struct diag *d)
{
	const struct allocator *glibc = process_allocator(p, "glibc");
	int err;

	for (size_t i = 0; i < list->n; i++)
		heap[i] = (struct glibc_thread){ .arena = -1 };
	if (!glibc || !p->pre.attachable)
		return 0;
	err = threads_locate(&p->t, &p->mods, list);
	if (err)
		return diag_internal(d, err, "looking for threads");
	return glibc_threads_read(p, glibc, list, heap, d);
}

static int make_rows(const struct process *p, struct threads *list, struct thread_rows *out,
		     struct diag *d)
{
	size_t most = list->n ? list->n : 1;
	struct glibc_thread *heap = calloc(most, sizeof(*heap));
	int err;

	out->v = calloc(most, sizeof(*out->v));
	if (!heap || !out->v) {
		free(heap);
		thread_rows_free(out);
		return diag_internal(d, -ENOMEM, "the threads");
	}
	err = read_heap(p, list, heap, d);
	for (size_t i = 0; !err && i < list->n; i++)
		out->v[out->n++] = (struct thread_row){ .t = list->v[i], .g = heap[i] };
	free(heap);
	if (err)
		thread_rows_free(out);
	return err;
}

int thread_rows_read(const struct process *p, struct thread_rows *out, struct diag *d)
{
	struct threads list;
	int err;

	phase_begin("reading its threads", 0);
	err = threads_read(&p->t, &list, d);
	*out = (struct thread_rows){ 0 };
	if (err)
		return err;
	err = threads_rank(&p->t, &p->maps, &p->mods, &list);
	if (!err && p->pre.injectable)
		err = preview_threads(&p->t, &p->maps, &p->mods, &list);
	if (!p->pre.attachable)
		forbid_all(&list);
	if (err)
		diag_internal(d, err, "ranking threads");
	else
		err = make_rows(p, &list, out, d);
	threads_free(&list);
	return err;
}

void thread_rows_free(struct thread_rows *r)
{
	free(r->v);
	*r = (struct thread_rows){ 0 };
}

static void add_stack(struct thread_rows *r, pid_t tid, const struct amounts *a)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].t.tid == tid) {
			r->v[i].stack_mapped += a->mapped;
			r->v[i].stack_resident += a->resident;
			return;
		}
}

void thread_rows_stacks(struct thread_rows *r, const struct owners *o, pid_t main)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct piece *p = &o->v[i];

		if (p->owner == OWNER_MAIN_STACK)
			add_stack(r, main, &p->a);
		else if (p->owner == OWNER_THREAD_STACK && p->id > 0)
			add_stack(r, (pid_t)p->id, &p->a);
	}
}
