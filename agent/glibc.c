// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../inject/mem.h"
#include "../inject/status.h"
#include "glibc_file.h"
#include "glibc_live.h"
#include "glibc_predict.h"
#include "golang.h"

#define OUTBUF_MARGIN 64 /* of the session's buffer, never written to */

/*
 * A static program without symbols: its version is not written anywhere, but its heap can be found.
 * If glibc's malloc is in it, it is the one that the program uses: the linker takes one definition.
 */
static bool detect_nameless(const struct process *p, const struct module *mod, struct allocator *a)
{
	struct glibc_live live;
	struct diag d = { 0 };

	if (!mod->is_main || mod->has_interp || !mod->elf || elf_file_has_symtab(mod->elf) ||
	    golang_module(mod) || glibc_live_open(p, a, &live, &d))
		return false;
	glibc_live_close(&live);
	a->owns_malloc = true;
	return true;
}

static size_t glibc_detect(const struct process *p, const struct module *mod,
			   struct allocator_search *search, struct allocator *a, size_t max)
{
	struct symbol s;

	(void)max;
	if (search->glibc != mod || module_symbol(mod, "malloc_trim", &s) < 0)
		return detect_nameless(p, mod, a);
	if (modules_glibc_version(mod, a->version, sizeof(a->version)) < 0)
		a->version[0] = '\0';
	return 1;
}

static int glibc_symbol(const struct module *mod, const char *name, uint64_t *addr, struct diag *d)
{
	struct symbol s;

	if (module_symbol(mod, name, &s) < 0)
		return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol",
				 "`check` shows which allocators the target has",
				 "the target's glibc has no symbol %s", name);
	*addr = s.addr;
	return 0;
}

static int glibc_read(const struct process *p, uint64_t addr, void *buf, size_t len,
		      const char *what, struct diag *d)
{
	int rc = mem_read(p->t.pid, addr, buf, len);

	if (rc == -ESRCH)
		return target_gone(&p->t, d);
	if (rc == -EPERM) {
		preflight_explain_eperm(&p->t, d);
		return rc;
	}
	if (rc)
		return diag_internal(d, rc, what);
	return 0;
}

/* A FILE of ours in the session's scratch. */
struct own_file {
	unsigned char *bytes;
	struct glibc_file_args args;
};

static int own_file_make(struct process *p, const struct module *libc, struct own_file *f,
			 struct diag *d)
{
	struct session *s = p->session;
	void *lock = session_alloc(s, GLIBC_LOCK_SIZE);
	struct symbol jumps;
	size_t len = 0;
	uint64_t addr = 0;
	int rc;

	f->bytes = session_alloc(s, GLIBC_FILE_SIZE);
	if (!lock || !f->bytes)
		return diag_internal(d, -ENOMEM, "scratch");
	f->args.lock = session_addr(s, lock);
	f->args.buf = session_outbuf(s, &len);
	if (len <= OUTBUF_MARGIN)
		return diag_internal(d, -ENOBUFS, "output buffer");
	f->args.len = len - OUTBUF_MARGIN;
	f->args.fd = session_outfd(s);
	f->args.vtable = module_symbol(libc, "_IO_file_jumps", &jumps) == 0 ? jumps.addr : 0;
	rc = glibc_symbol(libc, "_IO_2_1_stderr_", &addr, d);
	if (!rc)
		rc = glibc_read(p, addr, f->bytes, GLIBC_FILE_SIZE, "_IO_2_1_stderr_", d);
	if (!rc && glibc_file_build(f->bytes, &f->args) < 0)
		return diag_fail(
			d, -ENOTSUP, HM_UNSUPPORTED, "file-layout",
			"`check` shows which glibc it is; `trim` needs no FILE",
			"the target's stderr does not look like a FILE of glibc for bytes");
	return rc;
}

/* Runs one call that prints to f, and takes what it printed. */
static int own_file_call(struct process *p, struct own_file *f, struct call *c, char **text,
			 size_t *len, struct diag *d)
{
	bool cut, sink_cut;
	size_t used;
	int rc = process_calls(p, c, 1, d);

	if (rc)
		return rc;
	used = glibc_file_used(f->bytes, &f->args, &cut);
	return session_output(p->session, used, text, len, &sink_cut, d);
}

int glibc_malloc_info(struct process *p, const struct allocator *a, char **xml, size_t *len,
		      struct diag *d)
{
	struct own_file f = { 0 };
	struct call c = { 0 };
	int rc = glibc_symbol(a->mod, "malloc_info", &c.fn, d);

	*xml = NULL;
	if (!rc)
		rc = process_ready(p, d);
	if (rc)
		return rc;
	rc = own_file_make(p, a->mod, &f, d);
	if (!rc) {
		c.arg[1] = session_addr(p->session, f.bytes);
		rc = own_file_call(p, &f, &c, xml, len, d);
	}
	if (!rc && (int)c.ret != 0) {
		free(*xml);
		*xml = NULL;
		rc = diag_fail(d, -EINVAL, HM_CALL_FAILED, "call-failed", "try `stats`",
			       "malloc_info returned %d", (int)c.ret);
	}
	if (p->session)
		session_scratch_reset(p->session);
	return rc;
}

static int stderr_refuse(struct diag *d, const char *why)
{
	return diag_fail(d, -EBUSY, HM_UNSAFE, "stderr-in-use",
			 "use `info`: it has the same numbers and does not need stderr",
			 "malloc_stats prints to the target's stderr, and %s", why);
}

/*
 * In a direct session the variable stderr points to a FILE of ours while the call runs. No thread
 * may be there to see that.
 */
static int stats_direct(struct process *p, const struct allocator *a, uint64_t var, struct call *c,
			char **text, struct diag *d)
{
	struct proc_status now;
	struct own_file f = { 0 };
	size_t len;
	int rc = status_read(p->t.procfd, "status", &now);

	if (rc)
		return target_unreadable(&p->t, "/status", rc, d);
	if (now.threads != 1)
		return stderr_refuse(d, "other threads would see it replaced");
	rc = own_file_make(p, a->mod, &f, d);
	if (rc)
		return rc;
	c->swap_addr = var;
	c->swap_value = session_addr(p->session, f.bytes);
	return own_file_call(p, &f, c, text, &len, d);
}

/* True when nobody holds the lock at addr, now or within a fifth of a second. */
static bool lock_is_free(const struct process *p, uint64_t addr)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	int lock = 1;

	for (int i = 0; i < 10; i++) {
		if (mem_read(p->t.pid, addr, &lock, sizeof(lock)) < 0)
			return false;
		if (!lock)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/*
 * On the proxy descriptor 2 is ours, so what an unbuffered stderr writes to it reaches us and
 * nobody else. A buffered one would keep it, and print it later on a thread of the application.
 */
static int stderr_check(const struct process *p, const struct allocator *a, uint64_t file,
			struct glibc_file_state *s, struct diag *d)
{
	unsigned char bytes[GLIBC_FILE_SIZE];
	uint64_t own = 0, own_vtable;
	int rc = glibc_symbol(a->mod, "_IO_2_1_stderr_", &own, d);

	if (!rc)
		rc = glibc_read(p, own + GLIBC_FILE_SIZE - 8, &own_vtable, 8, "stderr", d);
	if (rc)
		return rc;
	if (mem_read(p->t.pid, file, bytes, sizeof(bytes)) == -EFAULT)
		return stderr_refuse(d, "that points to nothing here");
	rc = glibc_read(p, file, bytes, sizeof(bytes), "stderr", d);
	if (rc)
		return rc;
	glibc_file_inspect(bytes, s);
	if (!s->valid || s->vtable != own_vtable)
		return stderr_refuse(d, "that is not a plain FILE here");
	if (s->fd != 2)
		return stderr_refuse(d, "it does not go to descriptor 2 there");
	if (!s->unbuffered || s->buffered_bytes)
		return stderr_refuse(d, "it is buffered there");
	if (s->mode > 0)
		return stderr_refuse(d, "it takes wide characters there");
	if (!lock_is_free(p, s->lock))
		return stderr_refuse(d, "another thread holds its lock");
	return 0;
}

static int stats_proxy(struct process *p, const struct allocator *a, uint64_t var, struct call *c,
		       char **text, struct diag *d)
{
	struct glibc_file_state s = { 0 };
	uint64_t file;
	bool cut;
	size_t len;
	int rc = glibc_read(p, var, &file, sizeof(file), "stderr", d);

	if (!rc)
		rc = stderr_check(p, a, file, &s, d);
	if (rc)
		return rc;
	c->stdio = true;
	/* The first output decides a FILE for bytes or wide characters (fwide(3)); that is not for
	 * us to decide, and must not depend on our being alive when the call returns. */
	if (s.mode == 0)
		c->keep_addr = file + GLIBC_FILE_MODE;
	rc = process_calls(p, c, 1, d);
	if (rc)
		return rc;
	return session_output(p->session, 0, text, &len, &cut, d);
}

static int glibc_stats(struct process *p, const struct allocator *a, int argc, char **argv,
		       char **text, struct diag *d)
{
	struct call c = { 0 };
	struct symbol var;
	int rc;

	(void)argv;
	*text = NULL;
	if (argc > 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "leave them out",
				 "glibc's malloc_stats takes no arguments");
	rc = glibc_symbol(a->mod, "malloc_stats", &c.fn, d);
	if (rc)
		return rc;
	/* The program's copy of the variable, if it has one: that is what all of them use. */
	if (modules_symbol(&p->mods, "stderr", &var) < 0)
		return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-symbol", "use `info`",
				 "the target has no symbol stderr");
	rc = process_ready(p, d);
	if (rc)
		return rc;
	if (session_is_proxy(p->session))
		rc = stats_proxy(p, a, var.addr, &c, text, d);
	else
		rc = stats_direct(p, a, var.addr, &c, text, d);
	if (p->session)
		session_scratch_reset(p->session);
	return rc;
}

/* malloc_trim(3): 1 if memory was released, 0 if not; both are a success. */
static int glibc_trim(struct process *p, const struct allocator *a, uint64_t pad,
		      struct trim_part *part, struct diag *d)
{
	uint64_t arg[6] = { pad }, fn = 0, ret = 0;
	int rc = glibc_symbol(a->mod, "malloc_trim", &fn, d);

	snprintf(part->call, sizeof(part->call), "malloc_trim(%" PRIu64 ")", pad);
	if (!rc)
		rc = process_call(p, fn, arg, &ret, &part->duration_ns, d);
	if (rc)
		return rc;
	part->rc = (int)ret;
	return 0;
}

int glibc_mallopt(struct process *p, const struct mallopt_fact *f, long value, int *rc,
		  struct diag *d)
{
	const struct allocator *a = process_allocator(p, "glibc");
	uint64_t arg[6] = { (uint64_t)f->param, (uint64_t)value }, fn = 0, ret = 0;
	int err;

	*rc = 0;
	if (!a)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-glibc-malloc",
				 "`check` shows which allocator the target uses",
				 "glibc's malloc is not in use in the target");
	err = mallopt_value_check(f, value, d);
	/* mallopt consolidates the main arena first */
	if (!err)
		err = process_ready(p, d);
	if (!err)
		err = glibc_symbol(a->mod, "mallopt", &fn, d);
	if (!err)
		err = process_call(p, fn, arg, &ret, NULL, d);
	if (err)
		return err;
	*rc = (int)ret;
	if (*rc != 1)
		return diag_fail(d, -EINVAL, HM_CALL_FAILED, "call-failed", f->limit,
				 "mallopt(%s, %ld) returned %d: glibc refused it", f->name, value,
				 *rc);
	return 0;
}

const struct allocator_ops glibc_ops = {
	.name = "glibc",
	.callable = true,
	.detect = glibc_detect,
	.stats = glibc_stats,
	.predict = glibc_predict,
	.trim = glibc_trim,
};
