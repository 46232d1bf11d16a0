// SPDX-License-Identifier: GPL-3.0-or-later
/* A program of its own, which runs when heapmedic is built: generate WHAT DATE > FILE. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manual.h"

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "", *date = argc == 3 ? argv[2] : "";

	if (strcmp(what, "manual") == 0) {
		manual_write(stdout, date);
	} else if (strcmp(what, "json") == 0) {
		manual_json(stdout, date);
	} else if (strcmp(what, "keys") == 0) {
		schema_table(stdout);
	} else if (strcmp(what, "bash") == 0) {
		completion_bash(stdout);
	} else if (strcmp(what, "zsh") == 0) {
		completion_zsh(stdout);
	} else {
		fputs("generate: manual, json, keys, bash or zsh, and a date\n", stderr);
		return 2;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "generate: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}
