// SPDX-License-Identifier: GPL-3.0-or-later
// flags: -fPIC -shared -Wl,--hash-style=gnu -Wl,-soname,libx.so.1
/* A library with an allocator's names, thread-local data, unwind entries and a version string. */
static const char version[] __attribute__((used)) = "GNU C Library stable release version 2.36.";
static const char jemalloc[] __attribute__((used)) =
	"\0"
	"5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c";
__thread int counter = 3;
static __attribute__((noinline)) int hidden(int n)
{
	return n * 3;
}
void *malloc(unsigned long n)
{
	counter++;
	return (void *)(long)hidden((int)n);
}
void free(void *p)
{
	counter--;
}
int malloc_trim(unsigned long n)
{
	return hidden((int)n);
}
int mallctl(const char *s)
{
	return s[0];
}
const char *gnu_get_libc_version(void)
{
	return version + 37;
}
int a_rather_long_name(int (*f)(int))
{
	return f(2) + hidden(1);
}
unsigned _thread_db_pthread_start_routine[3] = { 64, 1, 0x640 };
int pthread_create(int (*f)(int))
{
	return f(1);
}
