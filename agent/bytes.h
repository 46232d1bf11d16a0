// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_BYTES_H
#define HM_BYTES_H
#include <stdbool.h>
#include <stddef.h>

/* Output that grows. An allocation that fails is remembered: what comes after it is dropped. */
struct bytes {
	char *v; /* the owner frees it */
	size_t len, cap;
	bool failed;
};

void bytes_put(struct bytes *b, const void *data, size_t len);
void bytes_char(struct bytes *b, char c);
void bytes_text(struct bytes *b, const char *text);
void bytes_printf(struct bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Frees what is there; b can be used again. */
void bytes_free(struct bytes *b);
#endif
