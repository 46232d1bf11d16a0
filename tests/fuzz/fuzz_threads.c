// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Which thread may be borrowed: names, registers and stacks are the target's. The input is the text
 * of maps (2 bytes of length before it), of a thread's stat and syscall (1 byte each), its stack
 * pointer, program counter and thread pointer (6 bytes each), then memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../inject/codemap.h"
#include "../../inject/safepoint.h"
#include "../../inject/threads.h"
#include "fuzz.h"

const char fuzz_name[] = "threads";

static void make_dirs(void)
{
	static const char status[] = "State:\tS\nTgid:\t9\nPid:\t9\nNSpid:\t9\t7\n";
	static bool made;

	if (made)
		return;
	made = true;
	FUZZ_CHECK(mkdirat(fuzz_procfd(), "task", 0700) == 0);
	FUZZ_CHECK(mkdirat(fuzz_procfd(), "task/9", 0700) == 0);
	fuzz_proc_file("status", status, sizeof(status) - 1);
	fuzz_proc_file("task/9/status", status, sizeof(status) - 1);
}

static void rank(const struct target *t, const struct maps *maps)
{
	struct threads list;
	struct diag d;

	diag_clear(&d);
	if (threads_read(t, &list, &d)) {
		fuzz_diag(&d);
		return;
	}
	FUZZ_CHECK(list.n == 1 && list.v[0].tid == 9);
	fuzz_printable(list.v[0].name, strlen(list.v[0].name), "");
	FUZZ_CHECK(threads_rank(t, maps, NULL, &list) == 0);
	FUZZ_CHECK(list.v[0].reason != NULL);
	FUZZ_CHECK(!list.v[0].tcb || list.v[0].tcb > list.v[0].sp - 64);
	threads_free(&list);
}

static void look(const struct maps *maps, uint64_t sp, uint64_t pc, uint64_t tp)
{
	static uint8_t buf[SAFEPOINT_BUF] __attribute__((aligned(8)));
	const struct modules none = { 0 };
	struct safepoint s = { .pid = FUZZ_PID,
			       .tid = 9,
			       .maps = maps,
			       .buf = buf,
			       .need = 4096,
			       .forbid = CODE_ALLOC | CODE_LOADER | CODE_THREADS };
	struct code_map *code;
	arch_regs regs;
	int rc;

	FUZZ_CHECK(code_map_build(&none, &code) == 0);
	FUZZ_CHECK(unwinder_new(FUZZ_PID, &none, &s.unwinder) == 0);
	s.code = code;
	rc = safepoint_preview(&s, sp, pc, tp);
	FUZZ_CHECK(rc == 0 || (rc == -EAGAIN && s.reason[0]));
	arch_sleeping(&regs, pc, sp, tp);
	rc = safepoint_check(&s, &regs);
	FUZZ_CHECK(rc <= 0 && (rc != -EAGAIN || s.reason[0]));
	FUZZ_CHECK(rc || (s.stack_lo < sp && sp <= s.stack_hi));
	unwinder_free(s.unwinder);
	code_map_free(code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct target t = { .pid = FUZZ_PID, .pidfd = -1, .procfd = fuzz_procfd(), .comm = "x" };
	uint64_t sp, pc, tp;
	struct maps maps;
	size_t len;
	const uint8_t *p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 2), &len);

	if (maps_parse((const char *)p, len, &maps))
		return 0;
	make_dirs();
	p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 1), &len);
	fuzz_proc_file("task/9/stat", p, len);
	p = fuzz_bytes(&in, (size_t)fuzz_number(&in, 1), &len);
	fuzz_proc_file("task/9/syscall", p, len);
	sp = fuzz_number(&in, 6);
	pc = fuzz_number(&in, 6);
	tp = fuzz_number(&in, 6);
	fuzz_memory(&in);
	rank(&t, &maps);
	look(&maps, sp, pc, tp);
	maps_free(&maps);
	return 0;
}
