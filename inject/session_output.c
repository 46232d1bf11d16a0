// SPDX-License-Identifier: GPL-3.0-or-later
/* What comes back: results, scratch memory, and the text that the calls wrote. */
#include "session_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cause.h"
#include "limits.h"
#include "mem.h"

#define OUTPUT_MAX ((size_t)256 << 20)

int session_results(struct session *s, struct call *v, size_t n, struct diag *d)
{
	size_t len = n * sizeof(struct hm_slot);
	int rc = mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, slot), s->block.slot,
			  len);

	if (rc == 0 && s->used)
		rc = mem_read(s->t->pid, s->r.scratch, s->scratch, s->used);
	if (rc)
		return session_lost(s, rc, "reading the results", d);
	for (size_t i = 0; i < n; i++) {
		v[i].ret = s->block.slot[i].ret;
		v[i].err = (int)s->block.slot[i].err;
		v[i].ns = s->block.slot[i].ns;
	}
	return 0;
}

/*
 * The memory file is a file to RLIMIT_FSIZE too: what goes beyond is refused to the writer, who
 * says nothing (SIGXFSZ is blocked on the proxy). Nothing at all in it is no output where there is
 * a buffer for it elsewhere.
 */
static int check_file_size(const struct session *s, uint64_t size, size_t elsewhere, struct diag *d)
{
	struct limits l;

	limits_soft(s->t, &l);
	if (size < l.fsize || (size == 0 && elsewhere))
		return 0;
	return cause_fail(d, -EFBIG, CAUSE_LIMIT_FILE_SIZE,
			  "RLIMIT_FSIZE of process %d is %" PRIu64
			  " bytes, which cuts what the call prints",
			  (int)s->t->pid, l.fsize);
}

/* All of the memory file, then the used part of the FILE's buffer. */
static int read_proxy_output(struct session *s, size_t outbuf_used, char **text, size_t *len,
			     struct diag *d)
{
	off_t size = lseek(s->proxy.out, 0, SEEK_END);
	size_t at = 0;
	int rc;

	if (size < 0)
		return -errno;
	rc = check_file_size(s, (uint64_t)size, outbuf_used, d);
	if (rc)
		return rc;
	if ((size_t)size > OUTPUT_MAX || outbuf_used > s->r.out_len)
		return -EFBIG;
	*text = malloc((size_t)size + outbuf_used + 1);
	if (!*text)
		return -ENOMEM;
	while (at < (size_t)size) {
		ssize_t n = pread(s->proxy.out, *text + at, (size_t)size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	if (outbuf_used && mem_read(s->t->pid, s->r.out, *text + at, outbuf_used) == 0)
		at += outbuf_used;
	(*text)[at] = '\0';
	*len = at;
	return ftruncate(s->proxy.out, 0) ? -errno : 0;
}

int session_output(struct session *s, size_t outbuf_used, char **text, size_t *len, bool *cut,
		   struct diag *d)
{
	uint64_t lost = 0;
	int rc = 0;

	*text = NULL;
	if (s->mode == HM_MODE_PROXY) {
		rc = read_proxy_output(s, outbuf_used, text, len, d);
		if (rc == -EFBIG && d->exit)
			return rc;
		if (rc == 0)
			rc = mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, out_lost),
				      &lost, sizeof(lost));
	} else if (s->captured) {
		*text = s->captured;
		*len = s->captured_len;
		(*text)[*len] = '\0';
		lost = s->captured_lost;
		s->captured = NULL;
	} else {
		*text = strdup("");
		*len = 0;
		rc = *text ? 0 : -ENOMEM;
	}
	if (rc) {
		free(*text);
		*text = NULL;
		return session_lost(s, rc, "reading the captured output", d);
	}
	*cut = lost > 0 || (s->mode == HM_MODE_DIRECT && *len >= s->r.out_len);
	return 0;
}
