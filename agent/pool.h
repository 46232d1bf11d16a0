// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_POOL_H
#define HM_POOL_H
#include <stddef.h>

/* Memory that is given back all at once. */
struct pool;
struct pool *pool_new(void); /* NULL: no memory */
/* size zeroed bytes, aligned for anything. NULL: no memory. */
void *pool_take(struct pool *p, size_t size);
void pool_free(struct pool *p); /* p may be NULL */
#endif
