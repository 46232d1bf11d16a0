// SPDX-License-Identifier: GPL-3.0-or-later
/* heapless: is there and allocates nothing, so that its malloc has no heap yet. */
#include "victim.h"

int main(void)
{
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
