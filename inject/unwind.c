// SPDX-License-Identifier: GPL-3.0-or-later
#include "unwind.h"

#include <errno.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64.h"
#include "cfa.h"
#include "eh_table.h"
#include "mem.h"
#include "pagecache.h"

/*
 * What libunwind-ptrace itself calls for a remote process (src/dwarf/Gfind_proc_info-lsb.c of
 * libunwind; exported, but in no header): finds the unwind entry of ip in the table that di
 * describes, all through the accessors.
 */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip,
					      unw_dyn_info_t *di, unw_proc_info_t *pi,
					      int need_unwind_info, void *arg);

/*
 * What it leaves in unw_proc_info_t.unwind_info begins with the addresses of the two programs that
 * it will run (struct dwarf_cie_info of its dwarf.h, the same in 1.1 to 1.8).
 */
struct cie_info {
	unw_word_t cie_start, cie_end, fde_start, fde_end;
};
/* Of one function; the longest in a large C++ program is a tenth of it. */
#define PROGRAM_MAX ((size_t)32 * 1024)

/* The tables are the target's: an expression in them may loop, so each word read is counted. */
#define READS_MAX      ((size_t)1 << 20)
#define READS_PER_STEP ((size_t)1 << 15)
/* A signal handler on an alternate stack, and one that interrupted it on a third, is plenty. */
#define SWITCHES_MAX 4

struct unwinder {
	pid_t pid;
	const struct modules *mods;
	struct pagecache *pages;
	struct eh_table *tables; /* one per module, read when first needed */
	unw_addr_space_t as;
	const arch_regs *regs; /* of the run */
	size_t reads;	       /* left in this step */
	size_t total;	       /* left in this run */
	bool no_info;	       /* in this step */
	unsigned char program[PROGRAM_MAX];
};

static bool spend(struct unwinder *u)
{
	if (!u->reads || !u->total)
		return false;
	u->reads--;
	u->total--;
	return true;
}

static bool program_ok(struct unwinder *u, unw_word_t start, unw_word_t end)
{
	if (start >= end)
		return true;
	return end - start <= sizeof(u->program) &&
	       !pagecache_read(u->pages, start, u->program, end - start) &&
	       cfa_program_ok(u->program, end - start);
}

/* What libunwind is about to run for this function. */
static bool programs_ok(struct unwinder *u, const unw_proc_info_t *pi)
{
	struct cie_info ci;

	if (!pi->unwind_info || (size_t)pi->unwind_info_size < sizeof(ci))
		return false;
	memcpy(&ci, pi->unwind_info, sizeof(ci));
	return program_ok(u, ci.cie_start, ci.cie_end) && program_ok(u, ci.fde_start, ci.fde_end);
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi,
			  int need_unwind_info, void *arg)
{
	struct unwinder *u = arg;
	const struct module *mod = modules_at(u->mods, ip);
	struct eh_table *t;
	unw_dyn_info_t di;
	int ret = -UNW_ENOINFO;

	if (mod) {
		t = &u->tables[mod - u->mods->v];
		if (!eh_table_need(t, mod, u->pages)) {
			memset(&di, 0, sizeof(di));
			di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
			di.start_ip = mod->start;
			di.end_ip = mod->end;
			di.u.rti.segbase = t->segbase;
			di.u.rti.table_data = t->entries;
			di.u.rti.table_len = t->count * 8 / sizeof(unw_word_t);
			ret = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need_unwind_info,
								 arg);
			if (ret >= 0 && need_unwind_info && !programs_ok(u, pi))
				ret = -UNW_ENOINFO;
		}
	}
	if (ret < 0)
		u->no_info = true;
	return ret;
}

/* libunwind frees what it got from the function above by itself. */
static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as;
	(void)pi;
	(void)arg;
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *list, void *arg)
{
	(void)as;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg)
{
	struct unwinder *u = arg;

	(void)as;
	if (write || !spend(u))
		return -UNW_EINVAL;
	return pagecache_word(u->pages, addr, val) ? -UNW_EINVAL : 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg)
{
	const struct unwinder *u = arg;
	uint64_t v;

	(void)as;
	/* libunwind's numbers are those of DWARF */
	if (write || reg < 0 || !arch_dwarf_reg(u->regs, (unsigned)reg, &v))
		return -UNW_EBADREG;
	*val = v;
	return 0;
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write, void *arg)
{
	(void)as;
	(void)reg;
	(void)val;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as;
	(void)c;
	(void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t len, unw_word_t *off,
		   void *arg)
{
	(void)as;
	(void)ip;
	(void)buf;
	(void)len;
	(void)off;
	(void)arg;
	return -UNW_ENOINFO;
}

static unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.put_unwind_info = put_unwind_info,
	.get_dyn_info_list_addr = no_dyn_info,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = no_fpreg,
	.resume = no_resume,
	.get_proc_name = no_name,
};

/* Headers, text and unwind tables of all modules stay as they are; pages of a module beyond the
 * limit are merely read again in each run. */
static void mark_constant(struct unwinder *u)
{
	size_t i;

	for (i = 0; i < u->mods->n; i++) {
		const struct module *mod = &u->mods->v[i];

		if (mod->ro_end > mod->ro_start &&
		    pagecache_constant(u->pages, mod->ro_start, mod->ro_end,
				       mod->from_memory ? NULL : mod->elf, mod->bias))
			break;
	}
}

int unwinder_new(pid_t pid, const struct modules *mods, struct unwinder **out)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	size_t i;
	int err;

	if (!u)
		return -ENOMEM;
	u->pid = pid;
	u->mods = mods;
	err = pagecache_new(pid, &u->pages);
	if (err)
		goto fail;
	mark_constant(u);
	err = -ENOMEM;
	u->tables = calloc(mods->n + 1, sizeof(*u->tables));
	if (!u->tables)
		goto fail;
	/* a table that must be made first is made now, when nobody is held */
	for (i = 0; i < mods->n; i++)
		if (mods->v[i].is_main && !mods->v[i].eh_frame_hdr &&
		    eh_table_need(&u->tables[i], &mods->v[i], u->pages))
			break;
	u->as = unw_create_addr_space(&accessors, 0);
	if (!u->as)
		goto fail;
	unw_set_caching_policy(u->as, UNW_CACHE_GLOBAL);
	*out = u;
	return 0;
fail:
	unwinder_free(u);
	return err;
}

void unwinder_free(struct unwinder *u)
{
	size_t i;

	if (!u)
		return;
	if (u->as)
		unw_destroy_addr_space(u->as);
	for (i = 0; u->tables && i < u->mods->n; i++)
		eh_table_free(&u->tables[i]);
	free(u->tables);
	pagecache_free(u->pages);
	free(u);
}

/* The restorer of a signal handler, by its code: mov $15 (rt_sigreturn), %rax or %eax; syscall. */
static bool at_trampoline(struct unwinder *u, uint64_t pc)
{
	static const unsigned char rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const unsigned char eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	unsigned char code[sizeof(rax)];

	if (pagecache_read(u->pages, pc, code, sizeof(code)))
		return false;
	return !memcmp(code, rax, sizeof(rax)) || !memcmp(code, eax, sizeof(eax));
}

struct walk {
	struct frame *v;
	size_t max, n;
	unsigned switches;
	bool exact; /* all steps so far */
};

/* Notes the frame that the cursor is at; false if it cannot be one. */
static bool take_frame(struct unwinder *u, unw_cursor_t *c, struct walk *w)
{
	unw_word_t pc, sp;
	struct frame *f, *below = w->n ? &w->v[w->n - 1] : NULL;

	if (unw_get_reg(c, UNW_REG_IP, &pc) < 0 || unw_get_reg(c, UNW_REG_SP, &sp) < 0)
		return false;
	/* A caller's frame is above; only the return from a signal handler may change stacks. */
	if (below && sp <= below->sp && (!below->signal || w->switches++ >= SWITCHES_MAX))
		return false;
	f = &w->v[w->n++];
	*f = (struct frame){ .pc = pc, .sp = sp, .exact = true };
	f->signal = at_trampoline(u, pc);
	return true;
}

int unwinder_run(struct unwinder *u, const arch_regs *regs, struct frame *v, size_t max, size_t *n,
		 bool *complete)
{
	struct walk w = { .v = v, .max = max, .exact = true };
	unw_cursor_t c;
	int step;

	*n = 0;
	*complete = false;
	if (!max)
		return -EINVAL;
	u->regs = regs;
	u->reads = READS_PER_STEP;
	u->total = READS_MAX;
	pagecache_next_run(u->pages);
	if (unw_init_remote(&c, u->as, u) < 0)
		return -EFAULT;
	while (take_frame(u, &c, &w)) {
		u->no_info = false;
		u->reads = READS_PER_STEP;
		step = unw_step(&c);
		/* Without unwind information libunwind guesses by the frame pointer. */
		if (u->no_info || step < 0)
			v[w.n - 1].exact = w.exact = false;
		if (step <= 0) {
			*complete = step == 0 && w.exact;
			break;
		}
		if (w.n == w.max)
			break;
	}
	*n = w.n;
	return *n ? 0 : -EFAULT;
}
