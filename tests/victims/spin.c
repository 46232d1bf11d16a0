// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * spin [two] [ask] [eintr]: the main thread fills every register that the CPU has with another
 * pattern in each turn, spins a millisecond or two, and compares: general registers, flags,
 * segments, x87 and MXCSR with their control and status words, vector and mask registers, AMX
 * tiles, the red zone below the stack pointer. What anybody changes meanwhile stays changed until
 * then. With "two" there is a second, sleeping thread. The report says how many turns were made, in
 * how many of them a frame was written for the spinning code, and which state components were used
 * (bits of XCR0).
 */
#include <cpuid.h>
#include <printf.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "spin_registers.h"
#include "victim.h"

#define SPINS 1000000ull

/* CF PF AF ZF SF OF, DF, AC, ID: all that user code may set and a signal's return brings back */
#define FLAGS 0x240cd5ull
#define IF_1  0x202ull
/* The XSAVE area: FCW, FSW, FTW; MXCSR and its mask; ST0 to ST7; XMM0 to XMM15; the header. */
enum {
	FCW = 0,
	FSW = 2,
	FTW = 4,
	X87_END = 6,
	MXCSR = 24,
	MXCSR_MASK = 28,
	ST0 = 32,
	XMM0 = 160,
	XMM_END = 416,
	XSTATE_BV = 512
};
/* Bits of XCR0: what is filled with random bytes. PKRU (9) is left as it is. */
enum { C_X87, C_SSE, C_AVX, C_OPMASK = 5, C_ZMM, C_HI_ZMM, C_TILECFG = 17, C_TILEDATA, C_APX };
#define BIT(n) (1ull << (n))
enum {
	ARCH_GET_FS = 0x1003,
	ARCH_GET_GS = 0x1004,
	ARCH_SET_GS = 0x1001,
	ARCH_REQ_XCOMP_PERM = 0x1023
};

uint64_t spin_gpr_in[SPIN_GPRS], spin_gpr_out[SPIN_GPRS];
uint64_t spin_red_in[SPIN_RED], spin_red_out[SPIN_RED];
uint64_t spin_flags_in, spin_flags_out, spin_flags_kept;
uint64_t spin_segment_in, spin_ds_out, spin_es_out, spin_at_fs, spin_at_gs;
uint64_t spin_x_mask, spin_touched;
uint8_t spin_x_in[SPIN_XSAVE] __attribute__((aligned(64)));
uint8_t spin_x_out[SPIN_XSAVE] __attribute__((aligned(64)));
uint8_t spin_x_kept[SPIN_XSAVE] __attribute__((aligned(64)));
static uint64_t gs_word = 0x6773206261736521ull;
/* AMD keeps the last x87 instruction and operand only while an exception is pending. */
static int x87_pointers_kept;

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t random_word(void)
{
	static uint64_t state;
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void random_bytes(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)random_word();
}

static void put16(size_t at, unsigned v)
{
	spin_x_in[at] = (uint8_t)v;
	spin_x_in[at + 1] = (uint8_t)(v >> 8);
}

/* Where a component lies in the area; 0 bytes if the CPU or the kernel does not have it. */
static size_t component(unsigned n, size_t *at)
{
	unsigned a, b, c, d;

	if (!(spin_x_mask & BIT(n)))
		return 0;
	__cpuid_count(0xd, n, a, b, c, d);
	*at = b;
	return a;
}

/*
 * An exception that is flagged and not masked would be raised by the next instruction: in every
 * fourth turn none is masked and none flagged, in the others all are masked and some flagged.
 */
static void fill_x87(int masked)
{
	static const unsigned precision[] = { 0, 2, 3 };
	uint64_t r = random_word();

	put16(FCW,
	      0x40 | (masked ? 0x3fU : 0) | precision[r % 3] << 8 | (unsigned)(r >> 8 & 3) << 10);
	put16(FSW, (unsigned)(r >> 16) & (masked ? 0x7f7fU : 0x7f00U));
	spin_x_in[FTW] = r >> 32 & 3 ? (uint8_t)(r >> 40) : 0xff; /* full, as MMX leaves it */
	for (size_t i = 0; i < 8; i++)
		random_bytes(spin_x_in + ST0 + 16 * i, 10);
}

static void fill_vectors(int masked)
{
	static const unsigned plain[] = { C_AVX, C_OPMASK, C_ZMM, C_HI_ZMM, C_TILEDATA, C_APX };
	uint32_t mask, mxcsr = (uint32_t)random_word() & 0xffff;
	size_t at, n;

	memcpy(&mask, spin_x_kept + MXCSR_MASK, sizeof(mask));
	/* the mask bits are 7 to 12, the flags 0 to 5 */
	mxcsr = masked ? mxcsr | 0x1f80 : mxcsr & ~0x1fbfU;
	mxcsr &= mask ? mask : 0xffbf;
	memcpy(spin_x_in + MXCSR, &mxcsr, sizeof(mxcsr));
	memcpy(spin_x_in + MXCSR_MASK, &mask, sizeof(mask));
	random_bytes(spin_x_in + XMM0, XMM_END - XMM0);
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		n = component(plain[i], &at);
		if (n)
			random_bytes(spin_x_in + at, n);
	}
	n = component(C_TILECFG, &at);
	if (!n)
		return;
	/* palette 1: eight tiles of 16 rows of 64 bytes */
	memset(spin_x_in + at, 0, n);
	spin_x_in[at] = 1;
	for (size_t i = 0; i < 8; i++) {
		spin_x_in[at + 16 + 2 * i] = 64;
		spin_x_in[at + 48 + i] = 16;
	}
}

static void fill(int turn)
{
	int masked = turn % 4 != 0;

	memset(spin_x_in, 0, sizeof(spin_x_in));
	memset(spin_x_out, 0, sizeof(spin_x_out));
	fill_x87(masked);
	fill_vectors(masked);
	memcpy(spin_x_in + XSTATE_BV, &spin_x_mask, sizeof(spin_x_mask));
	for (int i = 0; i < SPIN_GPRS; i++)
		spin_gpr_in[i] = random_word();
	spin_gpr_in[RCX] = turn ? SPINS : 1;
	random_bytes((uint8_t *)spin_red_in, sizeof(spin_red_in));
	spin_flags_in = (random_word() & FLAGS) | IF_1;
	spin_segment_in = turn & 1 ? 0x2b : 0; /* __USER_DS, or none */
}

static void compare_general(void)
{
	const uint64_t n = spin_gpr_in[RCX];
	uint64_t want[SPIN_GPRS];

	memcpy(want, spin_gpr_in, sizeof(want));
	want[RCX] = 0;
	want[RDX] = spin_red_in[0] + n;
	want[R8] += n;
	for (int i = 0; i < SPIN_GPRS; i++)
		if (spin_gpr_out[i] != want[i])
			wrong("general register %d is %#llx, not %#llx", i,
			      (unsigned long long)spin_gpr_out[i], (unsigned long long)want[i]);
	spin_red_in[0] += n;
	spin_red_in[SPIN_RED - 1] = spin_red_in[0];
	for (int i = 0; i < SPIN_RED; i++)
		if (spin_red_out[i] != spin_red_in[i])
			wrong("word %d of the red zone has changed", i);
	if (((spin_flags_out ^ spin_flags_in) & (FLAGS | 0x100)) != 0)
		wrong("the flags are %#llx, not %#llx", (unsigned long long)spin_flags_out,
		      (unsigned long long)spin_flags_in);
}

static void compare_segments(void)
{
	uint64_t fs = 0, gs = 0;

	if (spin_ds_out != spin_segment_in || spin_es_out != spin_segment_in)
		wrong("the segments are %#x and %#x, not %#x", (unsigned)spin_ds_out,
		      (unsigned)spin_es_out, (unsigned)spin_segment_in);
	if (syscall(SYS_arch_prctl, ARCH_GET_FS, &fs) || syscall(SYS_arch_prctl, ARCH_GET_GS, &gs))
		wrong("arch_prctl: %s", strerror(errno));
	/* the thread descriptor begins with its own address */
	if (fs != (uint64_t)pthread_self() || spin_at_fs != fs)
		wrong("the base of fs is %#llx", (unsigned long long)fs);
	if (gs != (uint64_t)(uintptr_t)&gs_word || spin_at_gs != gs_word)
		wrong("the base of gs is %#llx", (unsigned long long)gs);
}

static void same_bytes(const char *what, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (spin_x_in[i] != spin_x_out[i])
			wrong("%s: byte %u of the state is %#x, not %#x", what, (unsigned)i,
			      spin_x_out[i], spin_x_in[i]);
}

static void compare_vectors(void)
{
	static const char *const name[] = {
		[C_AVX] = "ymm",	[C_OPMASK] = "mask registers",
		[C_ZMM] = "zmm",	[C_HI_ZMM] = "zmm16 to zmm31",
		[C_APX] = "r16 to r31", [C_TILECFG] = "tile configuration",
		[C_TILEDATA] = "tiles"
	};

	same_bytes("x87 control, status and tag words", FCW, X87_END);
	if (x87_pointers_kept)
		same_bytes("x87 pointers", X87_END, MXCSR);
	same_bytes("MXCSR", MXCSR, MXCSR_MASK);
	same_bytes("x87 registers", ST0, XMM0);
	same_bytes("xmm", XMM0, XMM_END);
	same_bytes("components in use", XSTATE_BV, XSTATE_BV + 8);
	for (unsigned i = C_AVX; i <= C_APX; i++) {
		size_t at, n = component(i, &at);

		if (n)
			same_bytes(name[i], at, at + n);
	}
}

static uint64_t enabled_components(void)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

/* Before the first thread: the permission to use tiles is a process's. */
static void choose_components(void)
{
	const uint64_t tiles = BIT(C_TILECFG) | BIT(C_TILEDATA);
	unsigned a, b = 0, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		wrong("this CPU has no XSAVE");
	spin_x_mask = BIT(C_X87) | BIT(C_SSE) | BIT(C_AVX) | BIT(C_OPMASK) | BIT(C_ZMM) |
		      BIT(C_HI_ZMM) | BIT(C_APX) | tiles;
	spin_x_mask &= enabled_components();
	if ((spin_x_mask & tiles) && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, C_TILEDATA))
		spin_x_mask &= ~tiles;
	__cpuid_count(0xd, 0, a, b, c, d);
	if (b > SPIN_XSAVE)
		wrong("%u bytes of state are more than was thought of", b);
}

/* A turn that nobody can interfere with shows what the CPU itself does not keep. */
static void calibrate(void)
{
	fill(0);
	random_bytes(spin_x_in + X87_END, MXCSR - X87_END);
	/* of the opcode there are 11 bits, of addresses 48 */
	spin_x_in[X87_END + 1] &= 7;
	memset(spin_x_in + X87_END + 2 + 6, 0, 2);
	memset(spin_x_in + X87_END + 10 + 6, 0, 2);
	spin_run();
	x87_pointers_kept = !memcmp(spin_x_in + X87_END, spin_x_out + X87_END, MXCSR - X87_END);
	compare_general();
	compare_segments();
	compare_vectors();
	if (spin_touched)
		wrong("the stack below the red zone is not left alone");
}

static volatile unsigned asked, strange;

/* Prints an unsigned number in place of printf: on whatever thread, in whatever state. */
static int ask(FILE *to, const struct printf_info *info, const void *const *args)
{
	struct {
		uint32_t control, status, tags, pointer[4];
	} x87;
	uint32_t mxcsr;
	uint64_t flags;
	char digits[32];

	__asm__ volatile("pushfq; popq %0; stmxcsr %1; fnstenv %2; fldenv %2"
			 : "=r"(flags), "=m"(mxcsr), "=m"(x87));
	strange |= (x87.control & 0xffff) != 0x37f || (x87.tags & 0xffff) != 0xffff ? 1U : 0U;
	strange |= (mxcsr & ~0x3fU) != 0x1f80 ? 2U : 0U;
	strange |= flags & 0x40500 ? 4U : 0U;
	asked++;
	snprintf(digits, sizeof(digits), "%ld",
		 info->is_long ? *(const long *)args[0] : *(const int *)args[0]);
	return fputs(digits, to) < 0 ? -1 : (int)strlen(digits);
}

static int ask_size(const struct printf_info *info, size_t n, int *type, int *size)
{
	if (n > 0) {
		type[0] = PA_INT | (info->is_long ? PA_FLAG_LONG : 0);
		size[0] = info->is_long ? sizeof(long) : sizeof(int);
	}
	return 1;
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
	int two = victim_option(argc, argv, "two");
	int hits = 0;
	pthread_t t;

	victim_eintr = victim_option(argc, argv, "eintr");
	choose_components();
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, &gs_word))
		wrong("arch_prctl: %s", strerror(errno));
	calibrate();
	free(malloc(100));
	if (victim_option(argc, argv, "ask") && register_printf_specifier('u', ask, ask_size))
		wrong("register_printf_specifier: %s", strerror(errno));
	if (two && pthread_create(&t, NULL, sleeper, NULL))
		wrong("no thread");
	wait_started(two);
	victim_ready();
	for (int turn = 1; !victim_over(0); turn++) {
		fill(turn);
		spin_run();
		compare_general();
		compare_segments();
		compare_vectors();
		if (strange)
			wrong("a call was made with a strange x87 state (1), MXCSR (2), flags (4): "
			      "%u",
			      strange);
		hits += spin_touched != 0;
		snprintf(victim_says, sizeof(victim_says),
			 "turns %d hits %d asked %d components %#llx", turn, hits, (int)asked,
			 (unsigned long long)spin_x_mask);
	}
	return 0;
}
