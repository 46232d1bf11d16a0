// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TALLY_H
#define HM_TALLY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../inject/diag.h"
#include "sink.h"

/* What has become of each of several processes, for the table at the end. */
struct tally_row {
	pid_t pid;
	char comm[64]; /* "?": not known */
	bool reached;  /* its commands were run */
	enum hm_exit exit;
	char code[48];		/* of the error, as JSON has it; "": none */
	uint64_t before, after; /* RSS in bytes, 0: not known */
};

/* One line per process, and one for all. -ENOMEM; write errors show in sink_flush. */
HM_MUST_CHECK int tally_print(const struct tally_row *v, size_t n, bool bytes, struct sink *s);
#endif
