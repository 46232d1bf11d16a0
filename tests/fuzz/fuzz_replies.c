// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the calls into a target bring back: results, scratch memory and captured text are all of its
 * choice. The calls themselves are replaced. The input is a byte that says which, the length of the
 * text (1 byte) and the text, the results, the length of the scratch memory (2 bytes) and that, and
 * memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../agent/ctl_rule.h"
#include "../../agent/glibc.h"
#include "../../agent/jemalloc.h"
#include "../../agent/jemalloc_arenas.h"
#include "../../agent/jemalloc_prof.h"
#include "../../agent/process.h"
#include "../../inject/modules_private.h"
#include "../../inject/session_parts.h"
#include "fuzz.h"

const char fuzz_name[] = "replies";

#define BASE 0x600000000000ULL

#define CALLS 3
/* Of one command: whatever is answered, it comes to an end. */
#define BATCHES_MAX 16384

static struct {
	unsigned batches;
	uint64_t ret[CALLS];
	const uint8_t *scratch;
	size_t len;
} reply;
static struct session session;
static unsigned char scratch[SESSION_SCRATCH];

/* What waits for a lock of the target waits no time here. */
int nanosleep(const struct timespec *t, struct timespec *left)
{
	(void)t, (void)left;
	return 0;
}

/* ---- in place of agent/process.c */
int process_session(struct process *p, struct diag *d)
{
	(void)d;
	p->session = &session;
	return 0;
}

int process_ready(struct process *p, struct diag *d)
{
	return process_session(p, d);
}

int process_calls(struct process *p, struct call *v, size_t n, struct diag *d)
{
	(void)p, (void)d;
	FUZZ_CHECK(n <= SESSION_MAX_CALLS && ++reply.batches < BATCHES_MAX);
	for (size_t i = 0; i < n; i++) {
		FUZZ_CHECK(v[i].fn != 0);
		v[i].ret = reply.ret[i % CALLS];
		v[i].ns = reply.ret[CALLS - 1];
	}
	memcpy(scratch, reply.scratch, reply.len < session.used ? reply.len : session.used);
	return 0;
}

/* What it has written is the text. */
int process_calls_file(struct process *p, struct call *v, size_t n, const char *path, int *fd,
		       struct diag *d)
{
	FUZZ_CHECK(path >= (char *)scratch && path < (char *)scratch + sizeof(scratch));
	*fd = dup(session.proxy.out);
	return process_calls(p, v, n, d);
}

int process_call(struct process *p, uint64_t fn, const uint64_t arg[6], uint64_t *ret, uint64_t *ns,
		 struct diag *d)
{
	struct call c = { .fn = fn };
	int rc;

	memcpy(c.arg, arg, 6 * sizeof(arg[0]));
	rc = process_calls(p, &c, 1, d);
	if (ret)
		*ret = c.ret;
	if (ns)
		*ns = c.ns;
	return rc;
}

bool process_changed(const struct process *p)
{
	(void)p;
	return false;
}

const struct allocator *process_allocator(const struct process *p, const char *name)
{
	(void)name;
	return &p->allocs.v[0];
}

static struct elf_file *library(void)
{
	static const char *const names[] = { "malloc_info",	 "malloc_stats",
					     "malloc_trim",	 "mallopt",
					     "stderr",		 "_IO_2_1_stderr_",
					     "mallctl",		 "malloc_stats_print",
					     "mallctlnametomib", "mallctlbymib" };
	static struct elf_file *e;

	if (!e)
		FUZZ_CHECK(elf_file_open(fuzz_library(names, 10), &e) == 0);
	return e;
}

/* ---- the calls */
static void one_ctl(struct process *p, const char *name, const char *text)
{
	const struct ctl_name *row = ctl_find(name);
	struct ctl_value value, old;
	char buf[1100];
	struct diag d;
	bool write;
	int rc;

	diag_clear(&d);
	FUZZ_CHECK(row != NULL);
	write = text[0] && ctl_value_parse(row, text, &value, &d) == 0;
	rc = jemalloc_ctl(p, &p->allocs.v[0], name, row, write ? &value : NULL, &old, &d);
	FUZZ_CHECK(rc <= 0);
	if (rc) {
		fuzz_diag(&d);
		return;
	}
	ctl_value_format(&old, buf, sizeof(buf));
	fuzz_printable(buf, strlen(buf), "");
}

static void purge(struct process *p)
{
	char call[48];
	uint64_t ns;
	struct diag d;
	int result = 0, rc;

	diag_clear(&d);
	rc = jemalloc_purge(p, &p->allocs.v[0], JEMALLOC_ALL, &result, &ns, call, sizeof(call), &d);
	FUZZ_CHECK(rc <= 0);
	if (rc)
		fuzz_diag(&d);
}

static void prof_state(struct process *p)
{
	struct prof_state s;
	const char *unwinder;
	struct diag d;
	int rc;

	diag_clear(&d);
	rc = jemalloc_prof_state(p, &p->allocs.v[0], &s, &d);
	FUZZ_CHECK(rc <= 0);
	if (rc) {
		fuzz_diag(&d);
		return;
	}
	unwinder = prof_unwinder(&s);
	FUZZ_CHECK((unwinder != NULL) == prof_is(&s, PROF_COMPILED));
	FUZZ_CHECK(!prof_sample_bytes(&s) || prof_is(&s, PROF_ENABLED));
	rc = prof_check(&s, 7, "MALLOC_CONF=prof:true", &d);
	FUZZ_CHECK((rc == 0) == (prof_is(&s, PROF_COMPILED) && prof_is(&s, PROF_ENABLED)));
}

static void prof_dump(struct process *p)
{
	char *text = NULL;
	uint64_t ns;
	struct diag d;
	size_t len = 0;
	int rc;

	diag_clear(&d);
	rc = jemalloc_prof_dump(p, &p->allocs.v[0], &text, &len, &ns, &d);
	FUZZ_CHECK(rc <= 0);
	if (rc) {
		fuzz_diag(&d);
		FUZZ_CHECK(!text);
	} else {
		FUZZ_CHECK(strncmp(text, "heap_v2/", 8) == 0 && text[len] == '\0');
	}
	free(text);
}

/* Sweeps over whatever there is said to be. */
static int seen_cell(void *arg, const struct ctl_cell *cell)
{
	char buf[1100];

	(void)arg;
	if (!cell->value)
		return 0;
	ctl_value_format(cell->value, buf, sizeof(buf));
	fuzz_printable(buf, strlen(buf), "");
	return 0;
}

static void sweep(struct process *p, const char *name)
{
	static struct jemalloc_which which;
	struct ctl_sweep s = { .which = &which };
	struct ctl_path path;
	struct diag d;

	diag_clear(&d);
	FUZZ_CHECK(ctl_path_parse(ctl_find(name), name, &path) == 0);
	if (jemalloc_which_read(p, &p->allocs.v[0], &which, &d) ||
	    jemalloc_sweep(p, &p->allocs.v[0], &path, &s, seen_cell, NULL, &d))
		fuzz_diag(&d);
	FUZZ_CHECK(which.n <= JEMALLOC_ARENAS_MAX && s.cells <= SWEEP_CELLS_MAX);
}

static void arenas(struct process *p)
{
	struct jemalloc_arenas all;
	struct diag d;

	diag_clear(&d);
	if (jemalloc_arenas_read(p, &p->allocs.v[0], &all, &d)) {
		fuzz_diag(&d);
		return;
	}
	FUZZ_CHECK(all.n <= JEMALLOC_ARENAS_MAX);
	for (unsigned f = 0; f < JEM_DIRTY_DECAY; f++)
		FUZZ_CHECK(all.total.v[f] >= 0);
	jemalloc_arenas_free(&all);
}

static void texts(struct process *p, unsigned which)
{
	char *opts[] = { (char *)"J" }, *text = NULL;
	struct allocator *a = &p->allocs.v[0];
	struct trim_part part = { 0 };
	struct diag d;
	size_t len = 0;
	int rc;

	diag_clear(&d);
	if (which == 0)
		rc = glibc_malloc_info(p, a, &text, &len, &d);
	else if (which == 1)
		rc = glibc_ops.stats(p, a, 0, NULL, &text, &d);
	else if (which == 2)
		rc = jemalloc_ops.stats(p, a, 1, opts, &text, &d);
	else if (which == 3)
		rc = glibc_ops.trim(p, a, 4096, &part, &d);
	else
		rc = jemalloc_ops.trim(p, a, 0, &part, &d);
	FUZZ_CHECK(rc <= 0);
	if (rc) {
		fuzz_diag(&d);
		FUZZ_CHECK(!text);
	} else if (text) {
		FUZZ_CHECK(!len || text[len] == '\0');
	}
	free(text);
}

static void run(struct process *p, unsigned which)
{
	static const char *const ctls[] = { "version",	     "arena.0.dirty_decay_ms",
					    "epoch",	     "stats.allocated",
					    "prof.active",   "arenas.narenas",
					    "arena.0.purge", "opt.dss" };
	const char *value[] = { "", "1", "-1", "x" };

	if (which < 32)
		one_ctl(p, ctls[which % 8], value[which / 8]);
	else if (which < 40)
		texts(p, which - 32);
	else if (which < 48)
		purge(p);
	else if (which < 56)
		prof_state(p);
	else
		prof_dump(p);
}

static void run_sweep(struct process *p, unsigned which)
{
	static const char *const sweeps[] = { "arena.all.dss", "stats.arenas.all.pdirty",
					      "arenas.bin.all.size" };

	if (which % 4 == 0)
		arenas(p);
	else
		sweep(p, sweeps[which % 4 - 1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char status[] = "State:\tS\nTgid:\t7\nPid:\t7\nThreads:\t1\n";
	static unsigned char payload[64];
	struct code_range code = { .start = BASE / 2, .end = BASE / 2 + 0x100000 };
	struct module_extra more = { .code = &code, .codes = 1 };
	struct module mod = {
		.path = (char *)"x", .elf = library(), .bias = BASE / 2, .more = &more
	};
	struct process p = { .t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd() },
			     .mods = { .v = &mod, .n = 1 } };
	struct fuzz_input in = { data, size };
	unsigned which;
	size_t len;
	const uint8_t *text;

	which = (unsigned)fuzz_number(&in, 1);
	text = fuzz_bytes(&in, (size_t)fuzz_number(&in, 1), &len);
	p.allocs.v[0].mod = &mod;
	p.allocs.n = 1;
	session = (struct session){
		.t = &p.t, .mode = HM_MODE_PROXY, .scratch = scratch, .text = payload
	};
	session.proxy.out = fuzz_file(text, len);
	if (which & 64) {
		session.mode = HM_MODE_DIRECT;
		session.captured = fuzz_text(text, len);
		session.captured_len = len;
		fuzz_proc_file("status", status, sizeof(status) - 1);
	}
	region_layout(&session.r, BASE, HM_MODE_PROXY, 1, SESSION_SCRATCH, 0);
	reply.batches = 0;
	for (size_t i = 0; i < CALLS; i++)
		reply.ret[i] = fuzz_number(&in, 8);
	reply.scratch = fuzz_bytes(&in, (size_t)fuzz_number(&in, 2), &reply.len);
	fuzz_memory(&in);
	if (which & 128)
		run_sweep(&p, which & 63);
	else
		run(&p, which & 63);
	close(session.proxy.out);
	free(session.captured);
	return 0;
}
