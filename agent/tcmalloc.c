// SPDX-License-Identifier: GPL-3.0-or-later
#include "tcmalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/mem.h"
#include "../inject/status.h"
#include "allocator_missing.h"
#include "allocator_use.h"
#include "module_text.h"
#include "process.h"

#define STATS_SIZE   ((size_t)48 << 10) /* of the session's scratch */
#define ITANIUM_VPTR 16			/* behind a vtable's offset to top and type */

/* ---- what can be called */

/*
 * The same three functions under three kinds of names.
 * - gperftools' own C functions (malloc_extension_c.h).
 * - Its C++ methods, where a linker or strip has left only these: they take the object first. It is
 *   asked for, and only one whose methods these are is used: a debugging tcmalloc derives its own.
 * - Google's C functions (internal_malloc_extension.h): names come with their length.
 */
enum api_kind { API_C, API_CXX, API_GOOGLE, API_KINDS };
static const struct {
	const char *property, *release, *stats, *other_stats;
	const char *call; /* what a trim calls, for people */
} apis[API_KINDS] = {
	[API_C] = { "MallocExtension_GetNumericProperty", "MallocExtension_ReleaseFreeMemory",
		    "MallocExtension_GetStats", NULL, "MallocExtension_ReleaseFreeMemory()" },
	[API_CXX] = { "_ZN22TCMallocImplementation18GetNumericPropertyEPKcPm",
		      "_ZN15MallocExtension17ReleaseFreeMemoryEv",
		      "_ZN22TCMallocImplementation8GetStatsEPci", NULL,
		      "MallocExtension::ReleaseFreeMemory()" },
	/* the newer first: text for people, the other is a protocol buffer's */
	[API_GOOGLE] = { "MallocExtension_Internal_GetNumericProperty",
			 "MallocExtension_Internal_ReleaseMemoryToSystem",
			 "TCMalloc_Internal_GetStats", "MallocExtension_Internal_GetStatsInPbtxt",
			 "ReleaseMemoryToSystem(SIZE_MAX)" },
};
static const char cxx_instance[] = "_ZN15MallocExtension8instanceEv";
static const char cxx_vtable[] = "_ZTV22TCMallocImplementation";

struct api {
	enum api_kind kind;
	uint64_t property, release;
	uint64_t self; /* of API_CXX: the object */
};

static bool has_symbol(const struct module *mod, const char *name)
{
	struct symbol s;

	return module_symbol(mod, name, &s) == 0;
}

/* The first kind of which all but the text is there. */
static enum api_kind kind_of(const struct module *mod)
{
	enum api_kind k = API_C;

	while (k < API_KINDS &&
	       !(has_symbol(mod, apis[k].property) && has_symbol(mod, apis[k].release) &&
		 (k != API_CXX || (has_symbol(mod, cxx_instance) && has_symbol(mod, cxx_vtable)))))
		k++;
	return k;
}

bool tcmalloc_is_google(const struct allocator *a)
{
	return a->mod && kind_of(a->mod) == API_GOOGLE;
}

static int no_symbol(const char *name, struct diag *d)
{
	return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol",
			 "`check` shows which allocators the target has",
			 "the target's tcmalloc has no function %s", name);
}

static int function(const struct allocator *a, const char *name, uint64_t *addr, struct diag *d)
{
	struct symbol s;

	if (module_function(a->mod, name, &s) < 0)
		return no_symbol(name, d);
	*addr = s.addr;
	return 0;
}

/* The object, if its methods are those that the table names. */
static int cxx_object(struct process *p, const struct allocator *a, uint64_t *self, struct diag *d)
{
	struct call c = { 0 };
	struct symbol table;
	uint64_t vptr = 0;
	int err = function(a, cxx_instance, &c.fn, d);

	if (!err && module_symbol(a->mod, cxx_vtable, &table) < 0)
		err = no_symbol(cxx_vtable, d);
	if (!err)
		err = process_calls(p, &c, 1, d);
	if (err)
		return err;
	*self = c.ret;
	err = mem_read(p->t.pid, c.ret, &vptr, sizeof(vptr));
	if (err == -ESRCH)
		return target_gone(&p->t, d);
	if (err || vptr != table.addr + ITANIUM_VPTR)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-symbol",
				 "link it with the C functions of malloc_extension_c.h",
				 "the MallocExtension of %s is of a class that is not known here",
				 a->file);
	return 0;
}

/* Opens the session. */
static int api_open(struct process *p, const struct allocator *a, struct api *out, struct diag *d)
{
	int err = a->reach ? allocator_unreachable(a, d) : 0;

	*out = (struct api){ .kind = err ? API_KINDS : kind_of(a->mod) };
	if (!err && out->kind == API_KINDS)
		err = no_symbol(apis[API_C].property, d);
	if (!err)
		err = function(a, apis[out->kind].property, &out->property, d);
	if (!err)
		err = function(a, apis[out->kind].release, &out->release, d);
	if (!err)
		err = process_session(p, d);
	if (!err && out->kind == API_CXX)
		err = cxx_object(p, a, &out->self, d);
	return err;
}

/* The function with these arguments, behind the object where there is one. */
static struct call api_call(const struct api *api, uint64_t fn, uint64_t a, uint64_t b, uint64_t c)
{
	if (api->kind == API_CXX)
		return (struct call){ .fn = fn, .arg = { api->self, a, b, c } };
	return (struct call){ .fn = fn, .arg = { a, b, c } };
}

/* ---- figures */

/* What each is called; Google's where it differs. */
static const struct {
	const char *name, *google;
} properties[TCM_FIGURES] = {
	[TCM_ALLOCATED] = { "generic.current_allocated_bytes", NULL },
	[TCM_HEAP] = { "generic.heap_size", NULL },
	[TCM_PAGEHEAP_FREE] = { "tcmalloc.pageheap_free_bytes", NULL },
	[TCM_UNMAPPED] = { "tcmalloc.pageheap_unmapped_bytes", NULL },
	[TCM_THREAD_CACHES] = { "tcmalloc.current_total_thread_cache_bytes", NULL },
	[TCM_CENTRAL] = { "tcmalloc.central_cache_free_bytes", "tcmalloc.central_cache_free" },
	[TCM_TRANSFER] = { "tcmalloc.transfer_cache_free_bytes", "tcmalloc.transfer_cache_free" },
	[TCM_CACHE_LIMIT] = { "tcmalloc.max_total_thread_cache_bytes", NULL },
};

/* bool f(name, size_t *value), Google's bool f(name, length, size_t *value). -ENOMEM. */
static int property_call(struct session *s, const struct api *api, enum tcmalloc_figure f,
			 struct call *c, uint64_t **value)
{
	bool google = api->kind == API_GOOGLE;
	const char *name =
		google && properties[f].google ? properties[f].google : properties[f].name;
	size_t len = strlen(name);
	char *text = session_alloc(s, len + 1);
	uint64_t at;

	*value = session_alloc(s, sizeof(**value));
	if (!text || !*value)
		return -ENOMEM;
	memcpy(text, name, len + 1);
	at = session_addr(s, *value);
	*c = api_call(api, api->property, session_addr(s, text), google ? len : at, at);
	return 0;
}

/* A bool is only the lowest byte of what comes back; the C functions return an int. */
static bool is_true(const struct api *api, uint64_t ret)
{
	return api->kind == API_C ? (int32_t)ret != 0 : (ret & 0xff) != 0;
}

static int ask(struct process *p, const struct api *api, struct tcmalloc_figures *out,
	       struct diag *d)
{
	struct call c[TCM_FIGURES];
	uint64_t *value[TCM_FIGURES];
	int err = 0;

	*out = (struct tcmalloc_figures){ 0 };
	for (unsigned i = 0; !err && i < TCM_FIGURES; i++)
		err = property_call(p->session, api, (enum tcmalloc_figure)i, &c[i], &value[i]);
	if (err)
		return diag_internal(d, err, "scratch");
	err = process_calls(p, c, TCM_FIGURES, d);
	for (unsigned i = 0; !err && i < TCM_FIGURES; i++) {
		out->known[i] = is_true(api, c[i].ret);
		out->v[i] = out->known[i] ? *value[i] : 0;
	}
	return err;
}

static void end_calls(struct process *p)
{
	if (p->session)
		session_scratch_reset(p->session);
}

int tcmalloc_figures_read(struct process *p, const struct allocator *a,
			  struct tcmalloc_figures *out, struct diag *d)
{
	struct api api;
	int err = api_open(p, a, &api, d);

	*out = (struct tcmalloc_figures){ 0 };
	if (!err)
		err = ask(p, &api, out, d);
	end_calls(p);
	return err;
}

/* ---- trim */

/* A release returns whole free spans; of their pages some may never have been touched. */
static void predict(const struct tcmalloc_figures *f, struct prediction *out)
{
	*out = (struct prediction){ .known = f->known[TCM_PAGEHEAP_FREE],
				    .bytes = f->v[TCM_PAGEHEAP_FREE],
				    .most = true };
}

static int tcmalloc_trim(struct process *p, const struct allocator *a, uint64_t pad,
			 struct trim_part *part, struct diag *d)
{
	struct tcmalloc_figures f;
	struct api api;
	struct call c;
	int err = api_open(p, a, &api, d);

	(void)pad; /* it keeps nothing */
	if (!err)
		err = ask(p, &api, &f, d);
	end_calls(p);
	if (err)
		return err;
	predict(&f, &part->predicted);
	snprintf(part->call, sizeof(part->call), "%s", apis[api.kind].call);
	/* the length of Google's; the others take none */
	c = api_call(&api, api.release, api.kind == API_GOOGLE ? UINT64_MAX : 0, 0, 0);
	err = process_calls(p, &c, 1, d);
	part->no_rc = true;
	part->duration_ns = c.ns;
	return err;
}

/* ---- stats */

static int stats_function(const struct allocator *a, enum api_kind k, uint64_t *fn, struct diag *d)
{
	struct symbol s;

	if (module_function(a->mod, apis[k].stats, &s) == 0) {
		*fn = s.addr;
		return 0;
	}
	return function(a, apis[k].other_stats ? apis[k].other_stats : apis[k].stats, fn, d);
}

/* void f(char *buffer, int size); Google's return how much it would have been. */
static int stats_call(struct process *p, const struct api *api, uint64_t fn, char **text,
		      struct diag *d)
{
	char *buf = session_alloc(p->session, STATS_SIZE);
	struct call c;
	int err;

	if (!buf)
		return diag_internal(d, -ENOMEM, "scratch");
	c = api_call(api, fn, session_addr(p->session, buf), STATS_SIZE - 1, 0);
	err = process_calls(p, &c, 1, d);
	if (err)
		return err;
	*text = strndup(buf, STATS_SIZE - 1);
	return *text ? 0 : diag_internal(d, -ENOMEM, "stats");
}

static int tcmalloc_stats(struct process *p, const struct allocator *a, int argc, char **argv,
			  char **text, struct diag *d)
{
	uint64_t fn = 0;
	struct api api;
	int err = api_open(p, a, &api, d);

	(void)argc, (void)argv;
	*text = NULL;
	if (!err)
		err = stats_function(a, api.kind, &fn, d);
	if (!err)
		err = stats_call(p, &api, fn, text, d);
	end_calls(p);
	return err;
}

/* ---- detection */

/* "2.10" of "gperftools 2.10", which tc_version returns. */
static void version_read(const struct module *mod, struct allocator_search *s, char *buf,
			 size_t size)
{
	char text[MODULE_TEXT_MAX];

	buf[0] = '\0';
	if (module_text_find(mod, "gperftools ", &s->budget, text, sizeof(text)) == 0)
		snprintf(buf, size, "%.*s", (int)strspn(text, "0123456789."), text);
}

/* Those of its functions that a program calls by their own names. */
static const char *const own_names[] = { "tc_malloc", "tc_new", "tc_free", NULL };

static size_t tcmalloc_detect(const struct process *p, const struct module *mod,
			      struct allocator_search *s, struct allocator *v, size_t max)
{
	enum api_kind kind = max && mod->elf ? kind_of(mod) : API_KINDS;

	if (kind == API_KINDS)
		return 0;
	if (kind != API_GOOGLE)
		version_read(mod, s, v->version, sizeof(v->version));
	allocator_use(p, mod, "tcmalloc", own_names, v);
	return 1;
}

const struct allocator_ops tcmalloc_ops = {
	.name = "tcmalloc",
	.callable = true,
	.release = "ReleaseFreeMemory of the MallocExtension",
	.detect = tcmalloc_detect,
	.stats = tcmalloc_stats,
	.trim = tcmalloc_trim,
};
