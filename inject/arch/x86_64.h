// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ARCH_X86_64_H
#define HM_ARCH_X86_64_H
/* The only file that names registers. Register facts: System V AMD64 ABI; system calls: syscall(2),
 * entry_64.S. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

typedef struct user_regs_struct arch_regs;

#define ARCH_RED_ZONE	 128
#define ARCH_SYSCALL_LEN 2 /* bytes of the `syscall` instruction */
#define ARCH_EFLAGS_TF	 0x100UL
#define ARCH_EFLAGS_DF	 0x400UL
#define ARCH_EFLAGS_AC	 0x40000UL /* alignment is checked: libc's code is not written for that */
/* What no function may find set (System V ABI, 3.4.1), and what it does not expect. */
#define ARCH_EFLAGS_FOREIGN (ARCH_EFLAGS_TF | ARCH_EFLAGS_DF | ARCH_EFLAGS_AC)

/* `mov $15,%rax; syscall`: what glibc installs as sa_restorer, and the only code that ends in
 * rt_sigreturn(2). */
static const unsigned char arch_trampoline[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
/* `syscall; ret`: a system call that returns to the address on the stack and leaves errno alone. */
static const unsigned char arch_syscall_ret[] = { 0x0f, 0x05, 0xc3 };

static inline uint64_t arch_pc(const arch_regs *r)
{
	return r->rip;
}

static inline void arch_set_pc(arch_regs *r, uint64_t pc)
{
	r->rip = pc;
}

static inline uint64_t arch_sp(const arch_regs *r)
{
	return r->rsp;
}

static inline uint64_t arch_tp(const arch_regs *r)
{
	return r->fs_base;
}

/* What is known of a sleeping thread from outside; the other registers are 0. */
static inline void arch_sleeping(arch_regs *r, uint64_t pc, uint64_t sp, uint64_t tp)
{
	*r = (arch_regs){ .rip = pc, .rsp = sp, .fs_base = tp, .orig_rax = (unsigned long long)-1 };
}

/* A register by its DWARF number (System V ABI, table 3.36); false if there is none of that number.
 */
static inline bool arch_dwarf_reg(const arch_regs *r, unsigned n, uint64_t *v)
{
	const unsigned long long all[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
					   r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
					   r->r12, r->r13, r->r14, r->r15, r->rip };

	if (n >= sizeof(all) / sizeof(*all))
		return false;
	*v = all[n];
	return true;
}

/* Does any general register but the stack pointer hold an address in [lo, hi)? */
static inline bool arch_points_into(const arch_regs *r, uint64_t lo, uint64_t hi)
{
	uint64_t v;

	for (unsigned i = 0; i < 16; i++)
		if (i != 7 && arch_dwarf_reg(r, i, &v) && v >= lo && v < hi)
			return true;
	return false;
}

static inline uint64_t arch_frame_pointer(const arch_regs *r)
{
	return r->rbp;
}

/* The result register; in a system-call stop the call's result, negative errno for an error. */
static inline int64_t arch_result(const arch_regs *r)
{
	return (int64_t)r->rax;
}

static inline void arch_set_result(arch_regs *r, int64_t v)
{
	r->rax = (uint64_t)v;
}

/* The number of the system call the thread is in, -1 if the stop is in none. */
static inline long arch_syscall(const arch_regs *r)
{
	return (long)r->orig_rax;
}

/* Keeps the kernel from restarting a call at the next return to user mode, or skips the one about
 * to start. */
static inline void arch_no_syscall(arch_regs *r)
{
	r->orig_rax = (uint64_t)-1;
}

static inline uint64_t arch_syscall_arg(const arch_regs *r, unsigned i)
{
	const unsigned long long v[6] = { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 };

	return i < 6 ? v[i] : 0;
}

static inline void arch_set_syscall_arg(arch_regs *r, unsigned i, uint64_t v)
{
	unsigned long long *const at[6] = { &r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9 };

	if (i < 6)
		*at[i] = v;
}

static inline void arch_set_syscall_args(arch_regs *r, const uint64_t v[6])
{
	r->rdi = v[0];
	r->rsi = v[1];
	r->rdx = v[2];
	r->r10 = v[3];
	r->r8 = v[4];
	r->r9 = v[5];
}

/* At a system-call-enter stop: another call is made instead. */
static inline void arch_replace_syscall(arch_regs *r, long nr, const uint64_t v[6])
{
	r->orig_rax = (uint64_t)nr;
	arch_set_syscall_args(r, v);
}

/* Runs the `syscall` instruction at pc with this call. */
static inline void arch_enter_syscall(arch_regs *r, uint64_t pc, uint64_t sp, long nr,
				      const uint64_t v[6])
{
	r->rip = pc;
	r->rsp = sp;
	r->rax = (uint64_t)nr;
	r->eflags &= ~ARCH_EFLAGS_FOREIGN;
	arch_no_syscall(r);
	arch_set_syscall_args(r, v);
}

/* Calls a function of one argument; the word at sp is its return address, (sp + 8) is 16-aligned.
 */
static inline void arch_enter_call(arch_regs *r, uint64_t fn, uint64_t sp, uint64_t arg)
{
	r->rip = fn;
	r->rsp = sp;
	r->rdi = arg;
	r->rax = 0;
	r->eflags &= ~ARCH_EFLAGS_FOREIGN;
	arch_no_syscall(r);
}

/* The interrupted call will be made again from its `syscall` instruction, by a thread that the
 * kernel forgot about. */
static inline void arch_rewind_syscall(arch_regs *r)
{
	r->rax = r->orig_rax;
	r->rip -= ARCH_SYSCALL_LEN;
	arch_no_syscall(r);
}
#endif
