// SPDX-License-Identifier: GPL-3.0-or-later
#include "mimalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/status.h"
#include "allocator_missing.h"
#include "allocator_use.h"
#include "process.h"

#define TRIM_CALL "mi_collect(true)"

static int function(const struct allocator *a, const char *name, uint64_t *addr, struct diag *d)
{
	struct symbol s;

	if (a->reach)
		return allocator_unreachable(a, d);
	if (module_function(a->mod, name, &s) < 0)
		return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol",
				 "`check` shows which allocators the target has",
				 "the target's mimalloc has no function %s", name);
	*addr = s.addr;
	return 0;
}

/* ---- trim */

/*
 * mi_collect works on the heap of the thread that calls it, and on what belongs to no thread any
 * more. For one that has never allocated it does nothing at all, so a thread of ours is made known
 * first; its heap goes when it ends. A borrowed thread has its own, or is left as it is.
 */
static int mimalloc_trim(struct process *p, const struct allocator *a, uint64_t pad,
			 struct trim_part *part, struct diag *d)
{
	struct call c[2] = { 0 };
	size_t n = 0;
	int err = a->reach ? allocator_unreachable(a, d) : process_session(p, d);

	(void)pad; /* it keeps nothing */
	if (!err && session_is_proxy(p->session))
		err = function(a, "mi_thread_init", &c[n++].fn, d);
	if (!err)
		err = function(a, "mi_collect", &c[n].fn, d);
	if (err)
		return err;
	c[n++].arg[0] = 1; /* force */
	err = process_calls(p, c, n, d);
	snprintf(part->call, sizeof(part->call), "%s", TRIM_CALL);
	part->no_rc = true;
	part->duration_ns = c[n - 1].ns;
	return err;
}

/* ---- stats */

/* mi_stats_print_out(void (*out)(const char *text, void *arg), void *arg). */
static int mimalloc_stats(struct process *p, const struct allocator *a, int argc, char **argv,
			  char **text, struct diag *d)
{
	struct call c = { 0 };
	bool cut = false;
	size_t len = 0;
	int err = function(a, "mi_stats_print_out", &c.fn, d);

	(void)argc, (void)argv;
	*text = NULL;
	if (!err)
		err = process_session(p, d);
	if (err)
		return err;
	c.arg[0] = session_text_sink(p->session);
	err = process_calls(p, &c, 1, d);
	return err ? err : session_output(p->session, 0, text, &len, &cut, d);
}

/* ---- figures */

/* Out parameters of mi_process_info, in their order; each may be NULL. */
enum info { INFO_COMMITTED = 5, INFO_COMMITTED_PEAK, INFO_COUNT = 8 };

int mimalloc_figures_read(struct process *p, const struct allocator *a,
			  struct mimalloc_figures *out, struct diag *d)
{
	struct call c = { 0 };
	struct symbol s;
	uint64_t *v;
	int err = a->reach ? allocator_unreachable(a, d) : 0;

	*out = (struct mimalloc_figures){ 0 };
	if (err || module_function(a->mod, "mi_process_info", &s) < 0)
		return err;
	c.fn = s.addr;
	err = process_session(p, d);
	if (err)
		return err;
	v = session_alloc(p->session, INFO_COUNT * sizeof(*v));
	if (!v)
		return diag_internal(d, -ENOMEM, "scratch");
	for (unsigned i = 0; i < INFO_COUNT; i++)
		c.arg[i] = session_addr(p->session, &v[i]);
	err = process_calls(p, &c, 1, d);
	if (!err)
		*out = (struct mimalloc_figures){ .known = true,
						  .committed = v[INFO_COMMITTED],
						  .committed_peak = v[INFO_COMMITTED_PEAK] };
	if (p->session)
		session_scratch_reset(p->session);
	return err;
}

/* ---- detection */

unsigned mimalloc_version_decode(const unsigned char *code, size_t len)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const unsigned char mov_eax = 0xb8, ret = 0xc3;
	uint32_t n;

	if (len >= sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64))) {
		code += sizeof(endbr64);
		len -= sizeof(endbr64);
	}
	if (len < 6 || code[0] != mov_eax || code[5] != ret)
		return 0;
	memcpy(&n, code + 1, sizeof(n));
	return n;
}

/* MI_MALLOC_VERSION has a digit for each part so far. */
void mimalloc_version_format(unsigned number, char *buf, size_t size)
{
	if (number >= 100 && number < 1000)
		snprintf(buf, size, "%u.%u.%u", number / 100, number / 10 % 10, number % 10);
	else
		buf[0] = '\0';
}

static void version_read(const struct module *mod, char *buf, size_t size)
{
	unsigned char code[16] = { 0 };
	struct symbol s;

	buf[0] = '\0';
	if (module_function(mod, "mi_version", &s) == 0 &&
	    elf_file_read(mod->elf, s.addr - mod->bias, code, sizeof(code)) == 0)
		mimalloc_version_format(mimalloc_version_decode(code, sizeof(code)), buf, size);
}

/* Those of its functions that a program calls by their own names. */
static const char *const own_names[] = { "mi_malloc", "mi_new", "mi_heap_malloc", "mi_free", NULL };

static size_t mimalloc_detect(const struct process *p, const struct module *mod,
			      struct allocator_search *s, struct allocator *v, size_t max)
{
	struct symbol at;

	(void)s;
	if (!max || module_symbol(mod, "mi_version", &at) < 0 ||
	    module_symbol(mod, "mi_collect", &at) < 0)
		return 0;
	version_read(mod, v->version, sizeof(v->version));
	allocator_use(p, mod, "mimalloc", own_names, v);
	return 1;
}

const struct allocator_ops mimalloc_ops = {
	.name = "mimalloc",
	.callable = true,
	.release = TRIM_CALL,
	.detect = mimalloc_detect,
	.stats = mimalloc_stats,
	.trim = mimalloc_trim,
};
