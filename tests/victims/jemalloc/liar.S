// SPDX-License-Identifier: GPL-3.0-or-later
/* A library that claims to be jemalloc, by five names: two for a function that ends the process when it is called, data, an address
 * that is nobody's, and a function that chooses a function. */
	.text
	.globl	mallctl, jemk_mallctl, je_mallctl
	.type	mallctl, @function
	.type	jemk_mallctl, @function
mallctl:
	ud2
jemk_mallctl:
	ud2
	.size	mallctl, .-mallctl
	.size	jemk_mallctl, .-jemk_mallctl
	.type	je_mallctl, @gnu_indirect_function
je_mallctl:
	ud2
	.size	je_mallctl, .-je_mallctl

	.data
	.globl	_rjem_mallctl
	.type	_rjem_mallctl, @function
_rjem_mallctl:
	.quad	0xc3c3c3c3c3c3c3c3
	.size	_rjem_mallctl, .-_rjem_mallctl

	.globl	jemalloc_mallctl
	.type	jemalloc_mallctl, @function
	.set	jemalloc_mallctl, 0x7ffff000

	.section .note.GNU-stack, "", @progbits
