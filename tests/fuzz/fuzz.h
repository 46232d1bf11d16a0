// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_FUZZ_H
#define HM_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../inject/diag.h"

/*
 * A target is one file, tests/fuzz/fuzz_NAME.c, with these two in it and seeds in
 * tests/fuzz/corpus/NAME. `make fuzz` runs it under libFuzzer; `make test` gives it each seed
 * without (replay.c). It may be given any bytes, and ends the process where something is wrong.
 */
extern const char fuzz_name[];
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with the place where expr is false. */
#define FUZZ_CHECK(expr) ((expr) ? (void)0 : fuzz_fail(#expr, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *expr, const char *file, int line);

/* The bytes of an input that are still to be used. */
struct fuzz_input {
	const uint8_t *p;
	size_t left;
};
/* The next n bytes as a number, least significant first; zeros behind the end. n is at most 8. */
uint64_t fuzz_number(struct fuzz_input *in, unsigned n);
/* At most n of the next bytes; *len says how many. */
const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t n, size_t *len);
/* A NUL-terminated copy that is exactly as large: what reads on behind it is seen. free(3). */
char *fuzz_text(const void *data, size_t size);
/* A new memory file with these bytes. */
int fuzz_file(const void *data, size_t size);
/* A new memory file that is a library with these functions, the i-th at FUZZ_SYMBOL(i). */
#define FUZZ_SYMBOL(i) (0x1000ULL * ((i) + 1))
int fuzz_library(const char *const *names, size_t n);
/* A failure has a text, and its exit code is one of a failure. */
void fuzz_diag(const struct diag *d);
/* Each byte of text is printable ASCII, or in allowed: nothing that a terminal would obey. */
void fuzz_printable(const char *text, size_t len, const char *allowed);

/*
 * The memory of a process, whichever pid is asked for: fuzz programs are linked with this in place
 * of inject/mem.c. The rest of the input is a list of pieces, each an address (8 bytes), a length
 * (2 bytes) and that many bytes; a later piece covers an earlier one. The pages that they touch are
 * there, with zeros around them; at most FUZZ_PIECES count. The input must stay where it is.
 */
#define FUZZ_PIECES 64
#define FUZZ_PID    ((pid_t)4242)
void fuzz_memory(struct fuzz_input *in);
/* A directory like /proc/PID with the files that a target needs; made once for the process. */
int fuzz_procfd(void);
/* Puts a file there (its path below the directory). */
void fuzz_proc_file(const char *path, const void *data, size_t len);
#endif
