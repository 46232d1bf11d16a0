// SPDX-License-Identifier: GPL-3.0-or-later
#include "prompt.h"

#include <stdio.h>

/* Three digits or so: 812K, 45M, 3.9G. */
static void short_size(uint64_t bytes, char *buf, size_t size)
{
	static const char units[] = "BKMGTPE";
	double v = (double)bytes;
	int u = 0;

	while (v >= 999.5 && units[u + 1]) {
		v /= 1024;
		u++;
	}
	snprintf(buf, size, u && v < 9.95 ? " %.1f%c" : " %.0f%c", v, units[u]);
}

#define IGNORED(sequence) "\001\033[" sequence "m\002"

void prompt_format(const struct prompt *p, char *buf, size_t size)
{
	const char *bold = p->color ? IGNORED("1") : "", *red = p->color ? IGNORED("31") : "";
	const char *plain = p->color ? IGNORED("0") : "";
	char rss[16] = "";

	if (p->rss)
		short_size(p->rss, rss, sizeof(rss));
	snprintf(buf, size, "%s%s:%d%s%s%s%s%s%s%s> ", bold, p->comm, (int)p->pid, plain, rss,
		 p->proxy ? " proxy" : "", p->saved && !p->ended ? " snapshot" : "",
		 p->ended ? red : "", p->ended ? " exited" : "", p->ended ? plain : "");
}
