// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_STREAM_H
#define LIVE_STREAM_H
#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * heapmedic --json that runs while its process goes on, and is read line by line. Nothing here
 * returns an error.
 */
#define STREAM_MS    60000 /* a line comes at least so soon */
#define STREAM_LINES 300   /* more than anything here takes */

struct stream {
	pid_t pid, target;
	const char *command; /* whose answers are expected */
	int out;
	char text[65536]; /* what was read and not used yet */
	size_t len;
};

/* heapmedic SELECTOR TARGET --json COMMAND WORD..., NULL at the end; at most 20 words. */
void stream_start(struct stream *s, const char *selector, const char *target,
		  const char *const *words);
/* The next line as an object, which is about target; the caller ends it. */
json_t *stream_line(struct stream *s, pid_t target);
/*
 * What is left to read, up to the summary, which is the last line; then its end with that code. All
 * lines before are of exit 0.
 */
json_t *stream_end(struct stream *s, int exit);
json_t *stream_stop(struct stream *s, int sig);
#endif
