// SPDX-License-Identifier: GPL-3.0-or-later
// flags: -fPIC -shared -Wl,--hash-style=sysv -Wl,--build-id=none -s
int main(void)
{
	return 0;
}
void *malloc(unsigned long n)
{
	return (void *)n;
}
