// SPDX-License-Identifier: GPL-3.0-or-later
// A process without any libc: says ready and reads its standard input to the end.
#include <sys/syscall.h>
	.globl	_start
	.text
_start:
	mov	$SYS_prctl, %eax
	mov	$0x59616d61, %edi	// PR_SET_PTRACER
	mov	$-1, %rsi
	syscall
	mov	$SYS_write, %eax
	mov	$1, %edi
	lea	ready(%rip), %rsi
	mov	$6, %edx
	syscall
1:	xor	%eax, %eax		// SYS_read
	xor	%edi, %edi
	lea	byte(%rip), %rsi
	mov	$1, %edx
	syscall
	test	%rax, %rax
	jg	1b
	mov	%eax, %edi		// 0 at the end of the input, -errno otherwise
	neg	%edi
	mov	$SYS_exit_group, %eax
	syscall
	.section .rodata
ready:	.ascii	"ready\n"
	.bss
byte:	.byte	0
