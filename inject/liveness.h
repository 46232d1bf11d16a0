// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LIVENESS_H
#define HM_LIVENESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What does the code behind a system call read again? The kernel preserves the argument registers,
 * and a compiler that knows the call may rely on it. It may also keep variables of a function that
 * calls no other in the 128 bytes below the stack pointer, the red zone, which no signal handler
 * touches (System V AMD64 ABI, 3.2.2). Where neither is read, both may come back with other
 * contents than they went in with.
 */
struct liveness {
	bool arg_unread;  /* the argument register is overwritten first, or the function returns */
	bool zone_unread; /* nothing is read below the stack pointer, as far as it is seen by rsp */
	int32_t lowest;	  /* below rbp: the lowest displacement of an operand; 0: none below it */
	/* where the argument register goes back to a caller as it was */
	bool returns;
	bool from_frame; /* its return address lies at rbp + return_at, else at rsp + return_at */
	int32_t return_at;
};

/* Reads len bytes of code at addr; 0, or an error for a hole. */
typedef int (*liveness_reader)(void *context, uint64_t addr, void *buf, size_t len);

/*
 * Follows every way from pc on, the address behind a `syscall` instruction, to the return of the
 * function; arg is the argument's index, 0 to 5. Calls are followed into the function called and
 * behind it, where the register may still be what it was; who calls has no red zone. Both are false
 * where anything is met that this does not know: it knows a few dozen instructions that compilers
 * make around system calls.
 */
void liveness_look(liveness_reader read, void *context, uint64_t pc, unsigned arg,
		   struct liveness *out);
/*
 * May the compiler of the code that returns to `to` know which registers the function leaves alone?
 * It has called it directly then, and not through the PLT, which any definition may stand behind.
 */
bool liveness_caller_knows(liveness_reader read, void *context, uint64_t to);
#endif
