// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LAST_WORDS_H
#define HM_LAST_WORDS_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "modules.h"

/*
 * Why glibc aborts a process: before it raises SIGABRT it leaves the message that it prints
 * ("malloc(): corrupted top size") in memory, for whoever reads a core (__abort_msg, a pointer to
 * struct abort_msg_s: an int that counts bytes, then the text).
 */
/* Where the pointer is, 0 if libc has none such. */
uint64_t last_words_find(const struct modules *mods);
/* The message, escaped, without its line end; "" if there is none. */
void last_words_read(pid_t pid, uint64_t at, char *buf, size_t size);
#endif
