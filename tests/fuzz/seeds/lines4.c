// SPDX-License-Identifier: GPL-3.0-or-later
// flags: -static -e main -O1 -g -gdwarf-4 -gz
/* The same of an older version, compressed, with functions inside of functions. */
static volatile int counter;
static inline __attribute__((always_inline)) int twice(int x)
{
	counter++;
	return x * 2 + counter;
}
static inline __attribute__((always_inline)) int four(int x)
{
	int y = twice(x);

	return y > 7 ? twice(y) : y;
}
__attribute__((noinline)) int work(int x)
{
	{
		int z = four(x);

		return z + four(z + 1);
	}
}
int main(void)
{
	return work(counter) + four(3);
}
