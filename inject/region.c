// SPDX-License-Identifier: GPL-3.0-or-later
#include "region.h"

#include <string.h>
#include <sys/random.h>

#include "pages.h"

/*
 * Base addresses: 0x6... so that neither programs (0x55..., 0x4...), the Go heap (0xc0...) nor
 * mmap's own area (0x7f...) is near. Bits 42 to 33 are random, bits 32 to 22 their check; a region
 * is at most 4 MiB and starts on 4 MiB.
 */
#define BASE_PREFIX  0x600000000000ULL
#define BASE_ALIGN   REGION_MAX
#define RANDOM_SHIFT 33
#define RANDOM_BITS  10
#define CHECK_SHIFT  22
#define CHECK_BITS   11

#define STACK_LEN	 ((uint64_t)64 * 1024)	/* of the boot code */
#define DIRECT_STACK_LEN ((uint64_t)256 * 1024) /* of direct calls */
#define PROXY_STACK_LEN	 ((uint64_t)256 * 1024) /* of the proxy, without TLS */
#define PROXY_OUT_LEN	 ((uint64_t)64 * 1024)	/* a FILE's buffer; overflows into the memfd */
#define DIRECT_OUT_LEN	 ((uint64_t)1024 * 1024)

void region_layout(struct region *r, uint64_t base, enum hm_mode mode, size_t text, size_t scratch,
		   size_t tls)
{
	bool proxy = mode == HM_MODE_PROXY;
	uint64_t at = base;

	memset(r, 0, sizeof(*r));
	r->base = base;
	r->text_len = pages_ceil(text);
	at += r->text_len;
	r->stack = at;
	r->stack_len = proxy ? STACK_LEN : DIRECT_STACK_LEN;
	at += r->stack_len;
	r->block = at;
	at += pages_ceil(sizeof(struct hm_block));
	r->scratch = at;
	r->scratch_len = pages_ceil(scratch);
	at += r->scratch_len;
	r->out = at;
	r->out_len = proxy ? PROXY_OUT_LEN : DIRECT_OUT_LEN;
	at += r->out_len;
	if (proxy) {
		r->guard = at;
		at += PAGES_SIZE;
		r->pstack = at;
		r->pstack_len = PROXY_STACK_LEN + pages_ceil(tls);
		at += r->pstack_len;
	}
	r->size = at - base;
}

static uint64_t check_of(uint64_t random)
{
	/* any fixed mixing serves: it must only be unlikely by chance (multiplier: 2^64 / golden
	 * ratio) */
	return (random + 1) * 0x9e3779b97f4a7c15ULL >> (64 - CHECK_BITS);
}

static bool base_valid(uint64_t base)
{
	uint64_t random = base >> RANDOM_SHIFT & ((1U << RANDOM_BITS) - 1);
	uint64_t check = base >> CHECK_SHIFT & ((1U << CHECK_BITS) - 1);

	return base >> (RANDOM_SHIFT + RANDOM_BITS) ==
		       BASE_PREFIX >> (RANDOM_SHIFT + RANDOM_BITS) &&
	       check == check_of(random);
}

static bool range_free(const struct maps *maps, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start < hi && lo < maps->v[i].end)
			return false;
	return true;
}

uint64_t region_choose(const struct maps *maps, uint64_t size)
{
	uint16_t first = 0;

	if (size > BASE_ALIGN)
		return 0;
	/* without randomness the address is only more predictable, not wrong */
	if (getrandom(&first, sizeof(first), GRND_NONBLOCK) != sizeof(first))
		first = (uint16_t)(maps->n * 2654435761U >> 7);
	for (uint64_t i = 0; i < 1U << RANDOM_BITS; i++) {
		uint64_t random = (first + i) & ((1U << RANDOM_BITS) - 1);
		uint64_t base =
			BASE_PREFIX | random << RANDOM_SHIFT | check_of(random) << CHECK_SHIFT;

		if (range_free(maps, base, base + size))
			return base;
	}
	return 0;
}

bool region_owns(const struct map *m, uint64_t *base)
{
	*base = m->start & ~(BASE_ALIGN - 1);
	if (m->shared || m->inode)
		return false;
	if (strcmp(m->name, "[anon:" HM_NAME "]") == 0)
		return true;
	return m->name[0] == '\0' && base_valid(*base) && m->end - *base <= BASE_ALIGN;
}
