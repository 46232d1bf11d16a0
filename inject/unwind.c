// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * libunwind's remote interface over accessors of our own: memory through process_vm_readv with a
 * cache of pages, the registers that the caller has read, unwind tables (.eh_frame_hdr) from the
 * target's memory. So it works across mount namespaces and on deleted files, and needs no ptrace
 * request for each word.
 */
#include "unwind.h"

#include <errno.h>
#include <libunwind-ptrace.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64.h"
#include "mem.h"

/* In libunwind's shared and static libraries, but in none of its headers. */
int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

#define PAGE	    4096ULL
#define CACHE_PAGES 512 /* a power of two */

/* .eh_frame_hdr as linkers write it (LSB, "Exception Frames"). */
enum { HDR_VERSION = 1, ENC_PCREL_SDATA4 = 0x1b, ENC_UDATA4 = 0x03, ENC_DATAREL_SDATA4 = 0x3b };
struct eh_frame_hdr {
	uint8_t version, eh_frame_ptr_enc, fde_count_enc, table_enc;
	uint32_t eh_frame_ptr, fde_count;
};
struct table_entry {
	int32_t start_ip, fde;
};

struct page {
	uint64_t addr; /* 0: empty */
	uint64_t run;  /* valid in this run only; 0: code, valid for ever */
	uint8_t data[PAGE];
};

struct unwinder {
	pid_t pid;
	const struct modules *mods;
	unw_addr_space_t as;
	const arch_regs *regs;
	uint64_t run;
	bool guessed; /* since the last look: no tables for a pc, or memory that cannot be read */
	struct page *cache;
};

static const struct page *page_at(struct unwinder *u, uint64_t addr)
{
	struct page *p = &u->cache[(addr / PAGE) & (CACHE_PAGES - 1)];
	const struct module *m;

	addr &= ~(PAGE - 1);
	if (p->addr == addr && (p->run == 0 || p->run == u->run))
		return p;
	if (mem_read(u->pid, addr, p->data, PAGE)) {
		p->addr = 0;
		return NULL;
	}
	m = modules_at(u->mods, addr);
	p->addr = addr;
	p->run = m ? 0 : u->run;
	return p;
}

static int read_bytes(struct unwinder *u, uint64_t addr, void *buf, size_t len)
{
	uint8_t *out = buf;

	while (len) {
		const struct page *p = page_at(u, addr);
		size_t off = addr & (PAGE - 1);
		size_t n = PAGE - off < len ? PAGE - off : len;

		if (!p)
			return -EFAULT;
		memcpy(out, p->data + off, n);
		out += n;
		addr += n;
		len -= n;
	}
	return 0;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg)
{
	struct unwinder *u = arg;

	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (read_bytes(u, addr, val, sizeof(*val)) == 0)
		return 0;
	u->guessed = true;
	return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg)
{
	struct unwinder *u = arg;
	uint64_t v;

	(void)as;
	if (write || reg < 0 || !arch_dwarf_reg(u->regs, (unsigned)reg, &v))
		return -UNW_EBADREG;
	*val = v;
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write,
			void *arg)
{
	(void)as;
	(void)reg;
	(void)val;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
			  void *arg)
{
	struct unwinder *u = arg;
	const struct module *m = modules_at(u->mods, ip);
	struct eh_frame_hdr h;
	unw_dyn_info_t di = { 0 };
	int rc = -UNW_ENOINFO;

	if (m && m->eh_frame_hdr && read_bytes(u, m->eh_frame_hdr, &h, sizeof(h)) == 0 &&
	    h.version == HDR_VERSION && h.eh_frame_ptr_enc == ENC_PCREL_SDATA4 &&
	    h.fde_count_enc == ENC_UDATA4 && h.table_enc == ENC_DATAREL_SDATA4) {
		di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
		di.start_ip = m->start;
		di.end_ip = m->end;
		di.u.rti.segbase = m->eh_frame_hdr;
		di.u.rti.table_data = m->eh_frame_hdr + sizeof(h);
		di.u.rti.table_len =
			(unw_word_t)h.fde_count * sizeof(struct table_entry) / sizeof(unw_word_t);
		rc = _Ux86_64_dwarf_search_unwind_table(as, ip, &di, pi, need, arg);
	}
	if (rc < 0)
		u->guessed = true;
	return rc;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	/* entries of a table belong to libunwind's own pool */
	(void)as;
	(void)pi;
	(void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *addr, void *arg)
{
	(void)as;
	(void)addr;
	(void)arg;
	return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as;
	(void)c;
	(void)arg;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as, unw_word_t addr, char *buf, size_t len,
			 unw_word_t *off, void *arg)
{
	(void)as;
	(void)addr;
	(void)buf;
	(void)len;
	(void)off;
	(void)arg;
	return -UNW_ENOINFO;
}

int unwinder_new(pid_t pid, const struct modules *mods, struct unwinder **out)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	struct unwinder *u = calloc(1, sizeof(*u));

	*out = NULL;
	if (!u)
		return -ENOMEM;
	u->pid = pid;
	u->mods = mods;
	u->cache = calloc(CACHE_PAGES, sizeof(*u->cache));
	u->as = unw_create_addr_space(&accessors, 0);
	if (!u->cache || !u->as) {
		unwinder_free(u);
		return -ENOMEM;
	}
	unw_set_caching_policy(u->as, UNW_CACHE_GLOBAL);
	*out = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	if (u->as)
		unw_destroy_addr_space(u->as);
	free(u->cache);
	free(u);
}

static int frame_at(unw_cursor_t *c, struct frame *f)
{
	unw_word_t pc, sp;

	if (unw_get_reg(c, UNW_REG_IP, &pc) || unw_get_reg(c, UNW_REG_SP, &sp))
		return -EFAULT;
	*f = (struct frame){ .pc = pc, .sp = sp, .signal = unw_is_signal_frame(c) > 0 };
	return 0;
}

int unwinder_run(struct unwinder *u, const struct user_regs_struct *regs, struct frame *v,
		 size_t max, size_t *n, bool *complete)
{
	bool all_exact = true;
	unw_cursor_t c;

	*n = 0;
	*complete = false;
	u->regs = regs;
	u->run++;
	if (unw_init_remote(&c, u->as, u))
		return -EFAULT;
	while (*n < max) {
		struct frame *f = &v[*n];
		int rc;

		if (frame_at(&c, f) || f->pc == 0)
			break;
		/* the stack grows down: a frame that does not lie above the one it called is no
		 * frame */
		if (*n && f->sp <= v[*n - 1].sp && !v[*n - 1].signal)
			break;
		u->guessed = false;
		rc = unw_step(&c);
		f->exact = !u->guessed;
		all_exact = all_exact && f->exact;
		(*n)++;
		if (rc <= 0) {
			*complete = rc == 0 && all_exact;
			break;
		}
	}
	return 0;
}
