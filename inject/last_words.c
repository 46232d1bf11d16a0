// SPDX-License-Identifier: GPL-3.0-or-later
#include "last_words.h"

#include "mem.h"
#include "status.h"

#define TEXT_MAX 256

uint64_t last_words_find(const struct modules *mods)
{
	struct symbol s;

	return modules_symbol(mods, "__abort_msg", &s) == 0 ? s.addr : 0;
}

void last_words_read(pid_t pid, uint64_t at, char *buf, size_t size)
{
	char text[TEXT_MAX + 1];
	uint64_t message = 0;
	size_t len = 0;
	ssize_t n;

	buf[0] = '\0';
	if (!at || mem_read(pid, at, &message, sizeof(message)) || !message)
		return;
	n = mem_read_some(pid, message + sizeof(int), text, TEXT_MAX);
	while (n > 0 && len < (size_t)n && text[len] && text[len] != '\n')
		len++;
	escape_copy(buf, size, text, len);
}
