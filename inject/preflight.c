// SPDX-License-Identifier: GPL-3.0-or-later
#include "preflight.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "anchors.h"
#include "cause.h"
#include "ourselves.h"
#include "permit.h"

/* ---- what kind of program it is */

static void name_arch(const unsigned char *ident, uint16_t machine, struct preflight *out)
{
	const char *arch = "unknown";

	out->is_64bit = ident[EI_CLASS] == ELFCLASS64;
	if (machine == EM_X86_64)
		arch = out->is_64bit ? "x86_64" : "x32";
	else if (machine == EM_386)
		arch = "i386";
	snprintf(out->arch, sizeof(out->arch), "%s", arch);
}

/*
 * The word size of the auxiliary vector: it starts with a key below 2^16, whose upper half is zero
 * only where words have 64 bits (a 32-bit vector has its first value there, never 0 for the keys
 * that the kernel puts first).
 */
static void arch_by_auxv(const struct target *t, struct preflight *out)
{
	uint64_t word;
	char *text;
	size_t len;

	if (proc_read(t->procfd, "auxv", 65536, &text, &len))
		return;
	if (len >= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		out->is_64bit = word < 65536;
		snprintf(out->arch, sizeof(out->arch), "%s", out->is_64bit ? "x86_64" : "i386");
	}
	free(text);
}

static void read_arch(const struct target *t, struct preflight *out)
{
	int fd = openat(t->procfd, "exe", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	Elf64_Ehdr head; /* e_ident, e_type and e_machine are where they are in the 32-bit one */
	ssize_t n = -1;

	snprintf(out->arch, sizeof(out->arch), "unknown");
	if (fd >= 0) {
		n = pread(fd, &head, sizeof(head), 0);
		close(fd);
	}
	if (n >= (ssize_t)offsetof(Elf64_Ehdr, e_version) &&
	    memcmp(head.e_ident, ELFMAG, SELFMAG) == 0)
		name_arch(head.e_ident, head.e_machine, out);
	else
		arch_by_auxv(t, out);
}

static void read_namespaces(const struct target *t, struct preflight *out)
{
	static const struct {
		const char *theirs, *ours;
		size_t flag;
	} ns[] = {
		{ "ns/pid", "/proc/self/ns/pid", offsetof(struct preflight, other_pidns) },
		{ "ns/mnt", "/proc/self/ns/mnt", offsetof(struct preflight, other_mntns) },
		{ "ns/user", "/proc/self/ns/user", offsetof(struct preflight, other_userns) },
	};

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		uint64_t a = permit_ns_inode(t->procfd, ns[i].theirs);
		uint64_t b = permit_ns_inode(AT_FDCWD, ns[i].ours);

		*(bool *)((char *)out + ns[i].flag) = a && b && a != b;
	}
	/* told by status also where the links may not be read */
	if (out->status.nspid_len > 1)
		out->other_pidns = true;
}

/* ---- may we */

/* 0, -EPERM, -ESRCH, or that we have no descriptor: the kernel's answer to the question that
 * ptrace(2) would ask. */
static int probe_memory(const struct target *t)
{
	char byte;
	struct iovec here = { &byte, 1 };
	struct iovec there = { NULL, 1 }; /* address 0: allowed means EFAULT, nothing is read */
	int fd;

	if (process_vm_readv(t->pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	if (errno == ESRCH)
		return -ESRCH;
	/* a filter on ourselves may refuse that call and yet allow the file */
	fd = openat(t->procfd, "mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	close(fd);
	return 0;
}

bool preflight_may_attach(const struct target *t)
{
	return probe_memory(t) == 0 && ourselves_check(NULL) == 0;
}

void preflight_explain_eperm(const struct target *t, struct diag *d)
{
	(void)permit_explain(t, d);
}

/* Who traces it: "1234 (gdb)" where we may know. */
static void describe_tracer(pid_t tracer, char *buf, size_t size)
{
	struct proc_status st;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tracer);
	if (tracer && status_read(AT_FDCWD, path, &st) == 0)
		snprintf(buf, size, "process %d (%s)", (int)tracer, st.name);
	else if (tracer)
		snprintf(buf, size, "process %d", (int)tracer);
	else
		snprintf(buf, size, "a process outside our pid namespace");
}

static bool is_traced(const struct proc_status *st)
{
	return st->tracer != 0 || st->state == 't';
}

/* False with cause filled where the kernel would not let us attach. */
static bool check_attach(const struct target *t, struct preflight *out)
{
	struct permit permit;
	int r;

	if (out->status.kthread) {
		(void)target_kernel_thread(t->pid, t->comm, &out->cause);
		return false;
	}
	r = permit_read(t, &permit);
	if (r) {
		(void)target_unreadable(t, "/status", r, &out->cause);
		return false;
	}
	if (permit.self_call) {
		permit_cause(&permit, &out->cause);
		return false;
	}
	r = probe_memory(t);
	if (r == -EPERM)
		permit_cause(&permit, &out->cause);
	else if (r)
		(void)target_unreadable(t, "/mem", r, &out->cause);
	if (r)
		return false;
	if (is_traced(&out->status)) {
		char tracer[96];

		describe_tracer(out->status.tracer, tracer, sizeof(tracer));
		cause_fail(&out->cause, -EPERM, CAUSE_TRACED,
			   "process %d (%s) is traced already, by %s", (int)t->pid, t->comm,
			   tracer);
		return false;
	}
	return true;
}

/* The same for calls in it; the memory can still be read. */
static bool check_inject(const struct target *t, struct preflight *out)
{
	const struct proc_status *st = &out->status;
	struct permit permit;
	bool writable;
	int r;

	if (strcmp(out->arch, "x86_64") != 0) {
		cause_fail(&out->cause, -EOPNOTSUPP, CAUSE_ARCHITECTURE,
			   "process %d (%s) is %s%s; calls need a 64-bit x86-64 program",
			   (int)t->pid, t->comm, out->arch, out->is_64bit ? "" : ", not 64-bit");
		return false;
	}
	if (st->state == 'T') {
		cause_fail(&out->cause, -EBUSY, CAUSE_STOPPED,
			   "process %d (%s) is stopped by a signal (state T)", (int)t->pid,
			   t->comm);
		return false;
	}
	if (st->shadow_stack) {
		cause_fail(&out->cause, -EOPNOTSUPP, CAUSE_SHADOW_STACK,
			   "process %d (%s) runs with a shadow stack, which forbids calls from "
			   "outside",
			   (int)t->pid, t->comm);
		return false;
	}
	/* code of ours is written through it (mem_open_force) */
	writable = faccessat(t->procfd, "mem", R_OK | W_OK, AT_EACCESS) == 0 || errno != EACCES;
	if (st->seccomp == 0 && writable)
		return true;
	r = permit_read(t, &permit);
	if (r) {
		(void)target_unreadable(t, "/status", r, &out->cause);
		return false;
	}
	if (!writable) {
		permit_cause_files(&permit, &out->cause);
		return false;
	}
	if (permit_suspend_seccomp(&permit))
		return true;
	cause_fail(
		&out->cause, -EPERM, CAUSE_SECCOMP,
		"process %d (%s) has a seccomp filter (mode %d) that could kill it for our calls, "
		"and we lack what suspends it: %s",
		(int)t->pid, t->comm, st->seccomp,
		permit.seccomp		? "heapmedic runs under a filter itself"
		: permit.initial_userns ? "CAP_SYS_ADMIN"
					: "CAP_SYS_ADMIN in the first user namespace");
	return false;
}

int preflight_run(const struct target *t, struct preflight *out)
{
	int r;

	memset(out, 0, sizeof(*out));
	out->yama = permit_yama();
	snprintf(out->arch, sizeof(out->arch), "unknown");
	r = status_read(t->procfd, "status", &out->status);
	if (r == -ENOMEM)
		return diag_internal(&out->cause, r, "/proc/PID/status");
	if (r && r != -ESRCH && r != -ENOENT) {
		(void)target_unreadable(t, "/status", r, &out->cause);
		return 0;
	}
	if (r || out->status.state == 'Z' || out->status.state == 'X' || !target_alive(t)) {
		target_gone(t, &out->cause);
		return 0;
	}
	read_arch(t, out);
	read_namespaces(t, out);
	out->attachable = check_attach(t, out);
	out->injectable = out->attachable && check_inject(t, out);
	return 0;
}

/* ---- with modules */

static bool defines(const struct module *mod, const char *name)
{
	struct symbol s;

	return module_symbol(mod, name, &s) == 0;
}

static const struct module *find_main(const struct modules *mods)
{
	for (size_t i = 0; i < mods->n; i++) {
		if (mods->v[i].is_main)
			return &mods->v[i];
	}
	return NULL;
}

/* A module whose file is called like glibc's ("libc.so.6", "libc-2.31.so"), NULL if none. */
static const struct module *find_libc_by_name(const struct modules *mods)
{
	for (size_t i = 0; i < mods->n; i++) {
		const char *slash = strrchr(mods->v[i].path, '/');
		const char *base = slash ? slash + 1 : mods->v[i].path;

		if (strncmp(base, "libc.so.6", 9) == 0 || strncmp(base, "libc-2.", 7) == 0)
			return &mods->v[i];
	}
	return NULL;
}

/* The allocator calls that we would make, in a program that has its allocator built in. */
static bool has_builtin_allocator(const struct module *mod)
{
	static const char *const names[] = { "malloc_trim",
					     "mallctl",
					     "je_mallctl",
					     "_rjem_mallctl",
					     "_rjem_je_mallctl",
					     "jemalloc_mallctl",
					     "jemk_mallctl",
					     "MallocExtension_ReleaseFreeMemory",
					     "_ZN15MallocExtension17ReleaseFreeMemoryEv",
					     "MallocExtension_Internal_ReleaseMemoryToSystem",
					     "mi_collect" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (defines(mod, names[i]))
			return true;
	}
	return false;
}

static void refuse(struct preflight *p, enum cause cause, const char *what)
{
	p->injectable = false;
	cause_fail(&p->cause, -EOPNOTSUPP, cause, "%s", what);
}

static void refuse_unreadable(struct preflight *p, const struct module *mod, const char *what)
{
	char path[256];

	escape_copy(path, sizeof(path), mod->path, strlen(mod->path));
	p->injectable = false;
	cause_fail(&p->cause, -EOPNOTSUPP, CAUSE_NO_SYMBOLS,
		   "the file of %s cannot be read (%s): %s", what, path,
		   strerror(mod->elf_error < 0 ? -mod->elf_error : mod->elf_error));
}

/* A static program holds of libc only what it uses itself, which need not be all that a call needs.
 */
static void check_anchors(struct preflight *p, const struct modules *mods)
{
	struct anchors found;
	struct diag d = { 0 };

	if (anchors_find(mods, &found, &d) == 0)
		return;
	p->injectable = false;
	p->cause = d;
}

void preflight_modules(struct preflight *p, const struct modules *mods)
{
	const struct module *main_mod = find_main(mods), *libc = modules_glibc(mods), *named;

	if (!p->injectable)
		return;
	if (modules_musl(mods)) {
		refuse(p, CAUSE_MUSL,
		       "the program uses musl, whose allocator has no call that gives memory back");
		return;
	}
	if (libc && !libc->is_main)
		return;
	if (mods->linking) {
		p->injectable = false;
		cause_fail(&p->cause, -EBUSY, CAUSE_STARTING,
			   "the program is still starting: ld.so has not set up its libraries yet");
		return;
	}
	named = find_libc_by_name(mods);
	if (!libc && named && !named->elf) {
		refuse_unreadable(p, named, "libc");
		return;
	}
	if (main_mod && !main_mod->elf) {
		refuse_unreadable(p, main_mod, "the program");
		return;
	}
	if (main_mod && has_builtin_allocator(main_mod)) {
		check_anchors(p, mods);
		return;
	}
	if (main_mod && defines(main_mod, "runtime.mallocgc"))
		refuse(p, CAUSE_NO_LIBC,
		       "the program is pure Go: no C library is in it, so there is no allocator to "
		       "call");
	else if (libc)
		refuse(p, CAUSE_STATIC,
		       "the program is static and malloc_trim was not linked into it (or its "
		       "symbols "
		       "were stripped)");
	else
		refuse(p, CAUSE_NO_LIBC,
		       "no C library was found in the program: static without symbols, or not C at "
		       "all");
}
