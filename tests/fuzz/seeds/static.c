// SPDX-License-Identifier: GPL-3.0-or-later
// flags: -static -no-pie -fno-PIC -e main -Wl,--build-id -Wl,--no-eh-frame-hdr
/* A static program: .symtab only, and unwind entries without their table. */
int __libc_setup_tls(void)
{
	return 1;
}
int __libc_start_main(int (*f)(void))
{
	return f();
}
static int start_thread(int (*f)(void))
{
	return f() + __libc_setup_tls();
}
void *malloc(unsigned long n)
{
	return (void *)(n + 1);
}
int main(void)
{
	return start_thread(__libc_setup_tls) + __libc_start_main(__libc_setup_tls);
}
