// SPDX-License-Identifier: GPL-3.0-or-later
#include "gzip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* deflateInit2(3): the largest, with a gzip header */
#define MEM_LEVEL   8	      /* zlib's default */

/* zlib counts in unsigned int. */
static unsigned piece(size_t left)
{
	return left < UINT32_MAX ? (unsigned)left : UINT32_MAX;
}

static int deflate_all(z_stream *z, const unsigned char *data, size_t len, unsigned char *out,
		       size_t cap, size_t *used)
{
	size_t taken = 0;
	int rc;

	*used = 0;
	do {
		unsigned in = piece(len - taken), room = piece(cap - *used);

		z->next_in = (unsigned char *)(uintptr_t)(data + taken);
		z->avail_in = in;
		z->next_out = out + *used;
		z->avail_out = room;
		rc = deflate(z, taken + in == len ? Z_FINISH : Z_NO_FLUSH);
		taken += in - z->avail_in;
		*used += room - z->avail_out;
	} while (rc == Z_OK);
	return rc == Z_STREAM_END ? 0 : -ENOMEM;
}

int gzip_bytes(const void *data, size_t len, unsigned char **out, size_t *out_len)
{
	z_stream z = { .next_in = NULL };
	unsigned char *to;
	size_t cap;
	int err;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	cap = deflateBound(&z, len);
	to = malloc(cap);
	err = to ? deflate_all(&z, data, len, to, cap, out_len) : -ENOMEM;
	deflateEnd(&z);
	if (err) {
		free(to);
		return err;
	}
	*out = to;
	return 0;
}
