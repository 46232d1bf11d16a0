// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef SPIN_REGISTERS_H
#define SPIN_REGISTERS_H
/*
 * spin_run(): loads everything below into the registers, spins, and stores them all again. Between
 * the two not one instruction changes an arithmetic flag, so that a pattern of them can be kept.
 *
 * The vector and x87 registers travel in XSAVE areas (Intel SDM volume 1, chapter 13; the same on
 * AMD), which hold whatever registers the CPU has.
 */
#include <stddef.h>
#include <stdint.h>

#include "victim.h"

enum {
	SPIN_XSAVE = 16384, /* of which AMX needs 11008 */
	SPIN_RED = 16,	    /* words of the red zone (System V ABI AMD64, 3.2.2) */
	SPIN_BELOW = 4096,  /* what is watched below it */
};

/* In the order in which the assembly names them. */
enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, SPIN_GPRS };

/* As they are to be when it spins, and as they were when it had spun. */
extern uint64_t spin_gpr_in[SPIN_GPRS], spin_gpr_out[SPIN_GPRS];
extern uint64_t spin_red_in[SPIN_RED], spin_red_out[SPIN_RED]; /* -8(%rsp) and down */
extern uint64_t spin_flags_in, spin_flags_out;
extern uint64_t spin_segment_in, spin_ds_out, spin_es_out;
extern uint64_t spin_at_fs, spin_at_gs; /* the first words that the segments' bases point to */
extern uint8_t spin_x_in[SPIN_XSAVE], spin_x_out[SPIN_XSAVE], spin_x_kept[SPIN_XSAVE];
extern uint64_t spin_x_mask; /* components that are loaded and stored */
/* 1 when somebody has written below the red zone meanwhile: a frame for this very stack pointer. */
extern uint64_t spin_touched;
void spin_run(void);

/*
 * In the loop rcx counts down, r8 and the first and last word of the red zone count up: one that
 * is put back as it was a moment before is noticed as well. `loop` and `lea` leave the flags alone.
 */
/* clang-format off */
#define SPIN_EACH_GPR(from, to) \
	".set i, 0\n" \
	".irp r, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15\n" \
	"	mov " from ", " to "\n	.set i, i + 1\n.endr\n"
#define SPIN_EACH_RED(from, to) \
	".set i, 0\n.rept 16\n	mov " from ", %rax\n	mov %rax, " to "\n	.set i, i + 1\n.endr\n"
#define SPIN_MASK "	mov spin_x_mask(%rip), %eax\n	mov 4+spin_x_mask(%rip), %edx\n"

__asm__(".text\n.globl spin_run\n.type spin_run, @function\nspin_run:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	pushfq\n	popq spin_flags_kept(%rip)\n"
	SPIN_MASK
	"	xsave64 spin_x_kept(%rip)\n"
	/* what lies below the red zone is known */
	"	lea -128-4096(%rsp), %rdi\n	mov $512, %ecx\n	mov $0x5b, %eax\n	rep stosq\n"
	SPIN_MASK
	"	xrstor64 spin_x_in(%rip)\n"
	"	mov spin_segment_in(%rip), %eax\n	mov %eax, %ds\n	mov %eax, %es\n"
	"	pushq spin_flags_in(%rip)\n	popfq\n"
	SPIN_EACH_RED("spin_red_in+8*i(%rip)", "-8-8*i(%rsp)")
	SPIN_EACH_GPR("spin_gpr_in+8*i(%rip)", "%\\r")
	"1:	mov -8(%rsp), %rdx\n"
	"	lea 1(%rdx), %rdx\n"
	"	mov %rdx, -8(%rsp)\n"
	"	mov %rdx, -128(%rsp)\n"
	"	lea 1(%r8), %r8\n"
	"	loop 1b\n"
	SPIN_EACH_GPR("%\\r", "spin_gpr_out+8*i(%rip)")
	SPIN_EACH_RED("-8-8*i(%rsp)", "spin_red_out+8*i(%rip)")
	"	pushfq\n	popq spin_flags_out(%rip)\n"
	"	pushq spin_flags_kept(%rip)\n	popfq\n"
	SPIN_MASK
	"	xsave64 spin_x_out(%rip)\n	xrstor64 spin_x_kept(%rip)\n"
	"	xor %eax, %eax\n"
	"	mov %ds, %eax\n	mov %rax, spin_ds_out(%rip)\n"
	"	mov %es, %eax\n	mov %rax, spin_es_out(%rip)\n"
	"	mov %fs:0, %rax\n	mov %rax, spin_at_fs(%rip)\n"
	"	mov %gs:0, %rax\n	mov %rax, spin_at_gs(%rip)\n"
	"	lea -128-4096(%rsp), %rdi\n	mov $512, %ecx\n	mov $0x5b, %eax\n	repe scasq\n"
	"	mov $0, %eax\n	setne %al\n	mov %rax, spin_touched(%rip)\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n	ret\n");
/* clang-format on */
_Static_assert(SPIN_RED == 16 && SPIN_BELOW == 4096, "named by the assembly");
#endif
