// SPDX-License-Identifier: GPL-3.0-or-later
#include "torture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool torture_full(void)
{
	const char *length = getenv("TORTURE");

	return length && strcmp(length, "full") == 0;
}

unsigned torture_rounds(unsigned full, unsigned brief)
{
	return torture_full() ? full : brief;
}

void torture_figure(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "   %s\n", line);
}
