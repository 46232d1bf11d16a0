// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * spin [two] [eintr]: the main thread loads a pattern into every general register, the red zone
 * below its stack pointer and every vector register that the CPU has (also the opmasks), runs some
 * milliseconds of nothing but a counter in memory, stores all of them and compares. What anybody
 * changes in between stays changed until then. With "two" there is a second, sleeping thread.
 */
#include <pthread.h>

#include <stddef.h>

#include "victim.h"

enum { VEC_SSE, VEC_AVX, VEC_AVX512 };

/* Named by the assembly below. */
struct spin_state {
	uint64_t gpr[16]; /* rax rbx rcx rdx rsi rdi rbp r8..r15 */
	uint64_t red[16]; /* -8(%rsp) and down */
	uint64_t flags;
	uint32_t mxcsr, fpu_cw;
	uint64_t mask[8];
	uint8_t vec[32][64];
};
struct spin_state spin_in, spin_out;
uint64_t spin_left;
void spin_sse(void);
void spin_avx(void);
void spin_avx512(void);

/* clang-format off */
#define SIXTEEN "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define THIRTY_TWO SIXTEEN ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define NO_MASKS(from, to)
#define MASKS(from, to) ".irp n, 0,1,2,3,4,5,6,7\n	kmovq " from ", " to "\n.endr\n"
#define GPRS(from, to) \
	".set i, 0\n" \
	".irp r, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15\n" \
	"	mov " from ", " to "\n	.set i, i + 1\n.endr\n"
#define RED_ZONE(from, to) ".set i, 0\n.rept 16\n	" from "\n	" to "\n	.set i, i + 1\n.endr\n"
#define SPIN(name, insn, reg, numbers, masks) \
	".text\n.globl " name "\n.type " name ", @function\n" name ":\n" \
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n" \
	".irp n, " numbers "\n	" insn " spin_in+336+64*\\n(%rip), %" reg "\\n\n.endr\n" \
	masks("spin_in+272+8*\\n(%rip)", "%k\\n") \
	RED_ZONE("mov spin_in+128+8*i(%rip), %rax", "mov %rax, -8-8*i(%rsp)") \
	GPRS("spin_in+8*i(%rip)", "%\\r") \
	"1:	decq spin_left(%rip)\n	jnz 1b\n" \
	GPRS("%\\r", "spin_out+8*i(%rip)") \
	RED_ZONE("mov -8-8*i(%rsp), %rax", "mov %rax, spin_out+128+8*i(%rip)") \
	masks("%k\\n", "spin_out+272+8*\\n(%rip)") \
	".irp n, " numbers "\n	" insn " %" reg "\\n, spin_out+336+64*\\n(%rip)\n.endr\n" \
	"	stmxcsr spin_out+264(%rip)\n	fnstcw spin_out+268(%rip)\n" \
	"	pushf\n	pop %rax\n	mov %rax, spin_out+256(%rip)\n" \
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n	ret\n"
__asm__(SPIN("spin_sse", "movdqu", "xmm", SIXTEEN, NO_MASKS)
	SPIN("spin_avx", "vmovdqu", "ymm", SIXTEEN, NO_MASKS)
	SPIN("spin_avx512", "vmovdqu64", "zmm", THIRTY_TWO, MASKS));
/* clang-format on */
_Static_assert(offsetof(struct spin_state, red) == 128, "named by the assembly");
_Static_assert(offsetof(struct spin_state, flags) == 256, "named by the assembly");
_Static_assert(offsetof(struct spin_state, mxcsr) == 264, "named by the assembly");
_Static_assert(offsetof(struct spin_state, mask) == 272, "named by the assembly");
_Static_assert(offsetof(struct spin_state, vec) == 336, "named by the assembly");

static int vector_kind(void)
{
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
		return VEC_AVX512;
	return __builtin_cpu_supports("avx") ? VEC_AVX : VEC_SSE;
}

static void fill(unsigned turn, int kind)
{
	static const size_t width[] = { 16, 32, 64 };

	memset(&spin_in, 0, sizeof(spin_in));
	memset(&spin_out, 0, sizeof(spin_out));
	for (unsigned i = 0; i < 15; i++)
		spin_in.gpr[i] = 0xa5a5000000000000ull + ((uint64_t)turn << 8) + i;
	for (unsigned i = 0; i < 16; i++)
		spin_in.red[i] = 0x5a5a000000000000ull + ((uint64_t)turn << 8) + i;
	for (unsigned i = 0; i < 8 && kind == VEC_AVX512; i++)
		spin_in.mask[i] = 0x1234567800000000ull + ((uint64_t)turn << 8) + i;
	for (unsigned i = 0; i < (kind == VEC_AVX512 ? 32u : 16u); i++)
		for (unsigned j = 0; j < width[kind]; j++)
			spin_in.vec[i][j] = (uint8_t)(turn + 64 * i + j);
}

static void compare(uint32_t mxcsr, uint16_t fpu_cw)
{
	for (int i = 0; i < 15; i++)
		if (spin_in.gpr[i] != spin_out.gpr[i])
			wrong("general register %d has changed", i);
	for (int i = 0; i < 16; i++)
		if (spin_in.red[i] != spin_out.red[i])
			wrong("word %d of the red zone has changed", i);
	for (int i = 0; i < 8; i++)
		if (spin_in.mask[i] != spin_out.mask[i])
			wrong("mask register %d has changed", i);
	for (int i = 0; i < 32; i++)
		if (memcmp(spin_in.vec[i], spin_out.vec[i], sizeof(spin_in.vec[i])) != 0)
			wrong("vector register %d has changed", i);
	if (spin_out.flags & 0x40500) /* AC, DF, TF */
		wrong("flags are %#llx", (unsigned long long)spin_out.flags);
	if (spin_out.mxcsr != mxcsr || (uint16_t)spin_out.fpu_cw != fpu_cw)
		wrong("the floating point control words have changed");
}

static void *sleeper(void *arg)
{
	thread_started();
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	static void (*const spin[])(void) = { spin_sse, spin_avx, spin_avx512 };
	int kind = vector_kind(), two;
	uint32_t mxcsr;
	uint16_t fpu_cw;
	pthread_t t;

	victim_eintr = victim_option(argc, argv, "eintr");
	two = victim_option(argc, argv, "two");
	free(malloc(100));
	if (two && pthread_create(&t, NULL, sleeper, NULL))
		wrong("no thread");
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr), "=m"(fpu_cw));
	wait_started(two);
	victim_ready();
	for (unsigned turn = 0; !victim_over(0); turn++) {
		fill(turn, kind);
		spin_left = 4000000;
		spin[kind]();
		compare(mxcsr, fpu_cw);
	}
	return 0;
}
