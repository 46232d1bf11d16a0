// SPDX-License-Identifier: GPL-3.0-or-later
// flags: -fPIE -pie -e main -Wl,--no-as-needed -l:libc.so.6
// flags: -Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2
/* A program with a dynamic linker. */
int counter = 1;
int main(void)
{
	return counter;
}
