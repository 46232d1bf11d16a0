// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DIAG_H
#define HM_DIAG_H
/*
 * One failure, told once. Every function that can fail returns 0 or a negative errno; the one that
 * meets the failure first fills a struct diag with what the operator will read: the fact with its
 * number, and the next step.
 */

#define HM_MUST_CHECK __attribute__((warn_unused_result))

/* The program's exit codes: the contract with scripts. Only the two marked ones mean the target may
 * be affected. */
enum hm_exit {
	HM_OK = 0,
	HM_CALL_FAILED = 1,   /* the call itself failed, or the target refused it */
	HM_USAGE = 2,	      /* usage or script error, a value of the wrong type */
	HM_GONE = 3,	      /* no such process, or it is gone */
	HM_NOT_PERMITTED = 4, /* by the kernel, by --read-only or by --passive */
	HM_UNSUPPORTED = 5,   /* allocator, libc or architecture */
	HM_UNSAFE = 6,	      /* refused, nothing touched */
	HM_UNMET = 7,	      /* a requirement or threshold does not hold */
	HM_RUNNING = 8,	      /* the call still runs in the target (*) */
	HM_DIED = 9,	      /* the target died (*) */
	HM_INTERNAL = 10,     /* internal error, the target was restored */
};

struct diag {
	enum hm_exit exit;
	char code[32];	/* stable word for scripts: "no-safe-point" */
	char text[512]; /* fact and number, one line without final period */
	char hint[512]; /* next step, or "" */
};

void diag_clear(struct diag *d);

/*
 * Fills d and returns err, so that `return diag_fail(d, -ESRCH, ...)` reads well. err is a negative
 * errno. code and hint are copied; hint may be NULL. d may be NULL: then only err is returned.
 */
int diag_fail(struct diag *d, int err, enum hm_exit exit, const char *code, const char *hint,
	      const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* The same for a failure nobody expects: exit 10, code "internal", text "WHAT: strerror(-err)";
 * code "no-descriptors" where we have none left. */
int diag_internal(struct diag *d, int err, const char *what);
#endif
