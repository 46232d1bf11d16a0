// SPDX-License-Identifier: GPL-3.0-or-later
#include "snapshot_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "snapshot.h"

#define GZIP_ONLY (15 + 16) /* inflateInit2(3): a gzip header, nothing else */
#define FIRST	  ((size_t)1 << 16)

int snapshot_is_none(const char *name, struct diag *d)
{
	return diag_fail(d, -EINVAL, HM_USAGE, "no-snapshot",
			 "give a file that heapmedic -p PID snapshot FILE has written",
			 "%.150s is no snapshot of heapmedic", name);
}

static int too_large(const char *name, struct diag *d)
{
	return diag_fail(d, -EFBIG, HM_USAGE, "snapshot-too-large", SNAPSHOT_AGAIN,
			 "%.150s is larger than any snapshot: its text is limited to %zu MiB", name,
			 SNAPSHOT_TEXT_MAX >> 20);
}

static int damaged(const char *name, const char *what, struct diag *d)
{
	return diag_fail(d, -EINVAL, HM_USAGE, "damaged-snapshot", SNAPSHOT_AGAIN,
			 "%.150s is damaged: %s", name, what);
}

/* ---- gzip */

struct inflating {
	z_stream z;
	const unsigned char *bytes;
	size_t len, taken;
	char *text;
	size_t n, cap;
};

/* Z_OK as long as there is more to do, else zlib's answer. */
static int inflate_some(struct inflating *i)
{
	size_t left = i->len - i->taken, room = i->cap - i->n;
	int rc;

	i->z.next_in = (unsigned char *)(uintptr_t)(i->bytes + i->taken);
	i->z.avail_in = left < UINT32_MAX ? (unsigned)left : UINT32_MAX;
	i->z.next_out = (unsigned char *)i->text + i->n;
	i->z.avail_out = room < UINT32_MAX ? (unsigned)room : UINT32_MAX;
	left = i->z.avail_in;
	room = i->z.avail_out;
	rc = inflate(&i->z, Z_NO_FLUSH);
	i->taken += left - i->z.avail_in;
	i->n += room - i->z.avail_out;
	return rc;
}

static bool grow(struct inflating *i)
{
	size_t cap = i->cap ? i->cap * 2 : FIRST;
	char *grown = realloc(i->text, cap);

	if (!grown)
		return false;
	i->text = grown;
	i->cap = cap;
	return true;
}

static int inflate_all(struct inflating *i, const char *name, struct diag *d)
{
	int rc = Z_OK;

	while (rc == Z_OK) {
		if (i->n > SNAPSHOT_TEXT_MAX)
			return too_large(name, d);
		if (i->n == i->cap && !grow(i))
			return diag_internal(d, -ENOMEM, "reading a snapshot");
		rc = inflate_some(i);
	}
	if (rc == Z_MEM_ERROR)
		return diag_internal(d, -ENOMEM, "reading a snapshot");
	/* the output had room: it is the input that has ended */
	if (rc == Z_BUF_ERROR)
		return damaged(name, "it ends too early", d);
	if (rc != Z_STREAM_END)
		return damaged(name, i->z.msg ? i->z.msg : "its compression is", d);
	if (i->n > SNAPSHOT_TEXT_MAX)
		return too_large(name, d);
	return i->taken == i->len ? 0 : damaged(name, "something follows its end", d);
}

static bool is_gzip(const unsigned char *bytes, size_t len)
{
	return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; /* RFC 1952 */
}

int snapshot_inflate(const unsigned char *bytes, size_t len, const char *name, char **text,
		     size_t *text_len, struct diag *d)
{
	struct inflating i = { .bytes = bytes, .len = len };
	int err;

	if (!is_gzip(bytes, len))
		return snapshot_is_none(name, d);
	if (inflateInit2(&i.z, GZIP_ONLY) != Z_OK)
		return diag_internal(d, -ENOMEM, "reading a snapshot");
	err = inflate_all(&i, name, d);
	inflateEnd(&i.z);
	if (err) {
		free(i.text);
		return err;
	}
	*text = i.text;
	*text_len = i.n;
	return 0;
}

bool snapshot_begins(const unsigned char *bytes, size_t len)
{
	static const char begin[] = "{\"schema\":\"" SNAPSHOT_SCHEMA;
	char text[sizeof(begin) - 1];
	struct inflating i = { .bytes = bytes, .len = len, .text = text, .cap = sizeof(text) };

	if (!is_gzip(bytes, len) || inflateInit2(&i.z, GZIP_ONLY) != Z_OK)
		return false;
	while (i.n < i.cap && inflate_some(&i) == Z_OK)
		;
	inflateEnd(&i.z);
	return i.n == i.cap && memcmp(text, begin, i.cap) == 0;
}

/* ---- what jansson makes of it */

#define DEPTH_MAX 32

/* Bytes of memory for each, rounded up (jansson 2.14 on 64-bit machines, malloc's own included). */
enum { OBJECT_COST = 256, MEMBER_COST = 160, ARRAY_COST = 128, ENTRY_COST = 64 };

struct outline {
	bool array[DEPTH_MAX]; /* else an object */
	size_t depth, cost;
};

/* false where it is too deep. Text that is no JSON is left to jansson. */
static bool outline_char(struct outline *o, char c)
{
	switch (c) {
	case '{':
	case '[':
		if (o->depth == DEPTH_MAX)
			return false;
		o->array[o->depth++] = c == '[';
		o->cost += c == '[' ? ARRAY_COST + ENTRY_COST : OBJECT_COST;
		break;
	case '}':
	case ']':
		o->depth -= o->depth > 0;
		break;
	case ':':
		o->cost += MEMBER_COST;
		break;
	case ',':
		o->cost += o->depth && o->array[o->depth - 1] ? ENTRY_COST : 0;
		break;
	default:
		break;
	}
	return true;
}

int snapshot_bounded(const char *text, size_t len, const char *name, struct diag *d)
{
	struct outline o = { .cost = len };
	bool string = false;

	if (len > SNAPSHOT_TEXT_MAX)
		return too_large(name, d);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			string = !string;
		else if (string && text[i] == '\\')
			i++;
		else if (!string && !outline_char(&o, text[i]))
			return damaged(name, "its lists and objects are too deep in each other", d);
		if (o.cost > SNAPSHOT_TREE_MAX)
			return diag_fail(d, -EFBIG, HM_USAGE, "snapshot-too-large", SNAPSHOT_AGAIN,
					 "%.150s has more members than any snapshot: more than %zu "
					 "MiB of memory would be needed",
					 name, SNAPSHOT_TREE_MAX >> 20);
	}
	return 0;
}
