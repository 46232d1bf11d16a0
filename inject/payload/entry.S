// SPDX-License-Identifier: GPL-3.0-or-later
#include "abi.h"
/*
 * Entry points of the payload. The table at its start holds their offsets, so that the host needs no symbols.
 */
	.section .entries, "ax"
	.globl payload_entries
payload_entries:
	.quad	boot_entry - payload_entries
	.quad	proxy_entry - payload_entries
	.quad	payload_sink - payload_entries
	.quad	0
	.quad	payload_text - payload_entries

	.text
/*
 * boot_entry(block): the borrowed thread comes here with its stack pointer at the dead man's frame. The return address
 * is the signal trampoline: `ret` gives the thread its own registers back.
 *
 * What it computes with (x87 stack, rounding, exceptions that are not masked) is the application's. A call starts from
 * the initial state, as a signal handler does; a proxy inherits that. fninit does not wait for a pending exception.
 */
	.globl	boot_entry
boot_entry:
	fninit
	ldmxcsr	initial_mxcsr(%rip)
	sub	$8, %rsp
	call	payload_boot
	add	$8, %rsp
	ret

	.balign	4
initial_mxcsr:
	.long	0x1f80

/*
 * proxy_entry(block): start routine of the proxy thread. At the end it cannot return through memory that it has
 * unmapped, so it jumps into munmap, which returns to glibc's thread exit with 0.
 */
	.globl	proxy_entry
proxy_entry:
	push	%rbx
	mov	%rdi, %rbx
	call	payload_proxy
	mov	HM_OFF_BASE(%rbx), %rdi
	mov	HM_OFF_MUNMAP_LEN(%rbx), %rsi
	mov	HM_OFF_FN_MUNMAP(%rbx), %rax
	pop	%rbx
	jmp	*%rax

	.section .note.GNU-stack, "", @progbits
