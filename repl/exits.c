// SPDX-License-Identifier: GPL-3.0-or-later
#include "exits.h"

/* of: the flags, one of which a command must have to end so; 0: only what its row says. */
#define ANY	  (~0u)
#define OF_TARGET (CMD_PASSIVE | CMD_HOLDS | CMD_CALLS | CMD_WRITES)

static const struct {
	const char *meaning;
	unsigned of;
} exits[] = {
	[HM_OK] = { "done", ANY },
	[HM_CALL_FAILED] = { "the call failed, or the target refused it; or interrupted",
			     OF_TARGET },
	[HM_USAGE] = { "usage: a word, option or value is wrong", ANY },
	[HM_GONE] = { "no such process, or it has ended", OF_TARGET },
	[HM_NOT_PERMITTED] = { "not permitted: by the kernel, --read-only, --passive, or nobody "
			       "said yes",
			       OF_TARGET },
	[HM_UNSUPPORTED] = { "not supported: this allocator, libc or architecture", OF_TARGET },
	[HM_UNSAFE] = { "refused as unsafe, nothing was touched", CMD_HOLDS | CMD_CALLS },
	[HM_UNMET] = { "a requirement or threshold is not met", 0 },
	[HM_RUNNING] = { "the call still runs in the target, and ends there", CMD_CALLS },
	[HM_DIED] = { "the target has died meanwhile", CMD_CALLS },
	[HM_INTERNAL] = { "an internal error; the target was restored", ANY },
};
#define N (sizeof(exits) / sizeof(exits[0]))

const char *exit_meaning(enum hm_exit code)
{
	return (size_t)code < N ? exits[code].meaning : NULL;
}

const char *exit_of_command(const struct command *row, enum hm_exit code)
{
	for (size_t i = 0; i < COMMAND_EXITS && row->exits[i].when; i++)
		if (row->exits[i].code == code)
			return row->exits[i].when;
	return (size_t)code < N && (exits[code].of & row->flags) ? exits[code].meaning : NULL;
}
