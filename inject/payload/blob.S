// SPDX-License-Identifier: GPL-3.0-or-later
	.section .rodata
	.balign	16
	.globl	payload_begin
	.globl	payload_end
payload_begin:
	.incbin PAYLOAD_BIN
payload_end:
	.section .note.GNU-stack, "", @progbits
