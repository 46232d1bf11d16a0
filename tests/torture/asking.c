// SPDX-License-Identifier: GPL-3.0-or-later
#include "asking.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"

const char *heapmedic_path(void)
{
	const char *program = getenv("HEAPMEDIC");

	return program ? program : "./heapmedic";
}

void ask(pid_t pid, const struct asking *a, const char *command, const char *option,
	 struct answer *out)
{
	char number[16];
	const char *args[RUN_ARGS + 1] = { 0 };
	struct run_opts o = { .nobody = a->nobody, .interrupted = a->no_leak_check };
	struct run r;
	json_t *json;
	size_t n = 0;

	snprintf(number, sizeof(number), "%d", pid);
	if (a->through) {
		o.program = a->through[0];
		for (size_t i = 1; a->through[i]; i++)
			args[n++] = a->through[i];
		args[n++] = heapmedic_path();
	}
	args[n++] = "-p";
	args[n++] = number;
	args[n++] = "--json";
	args[n++] = command;
	args[n++] = option;
	cr_assert_leq(n, RUN_ARGS);
	run_with(&r, &o, args);
	cr_assert_eq(r.sig, 0, "heapmedic died of signal %d: %s%s", r.sig, r.out, r.err);
	json = json_loads(r.out, 0, NULL);
	cr_assert_not_null(json, "no answer of %s: exit %d, %s%s", command, r.exit, r.out, r.err);
	memset(out, 0, sizeof(*out));
	out->exit = r.exit;
	cr_assert_eq(json_int(json, "exit"), r.exit);
	if (r.exit) {
		snprintf(out->code, sizeof(out->code), "%s", json_text(json, "error.code"));
		snprintf(out->text, sizeof(out->text), "%s", json_text(json, "error.text"));
		cr_assert_gt(strlen(json_text(json, "error.hint")), 0, "no next step: %s", r.out);
	}
	json_decref(json);
	run_free(&r);
}

const struct asking plain = { 0 }, holding = { .how = "--hold" }, as_nobody = { .nobody = true };

void both_say(pid_t pid, const struct asking *a, int exit, const char *code, const char *part)
{
	struct answer check, trim;

	ask(pid, a, "check", a->how, &check);
	ask(pid, a, "trim", NULL, &trim);
	cr_assert(check.exit == trim.exit && !strcmp(check.code, trim.code),
		  "check says %d %s (%s), trim says %d %s (%s)", check.exit, check.code, check.text,
		  trim.exit, trim.code, trim.text);
	cr_assert(trim.exit == exit && !strcmp(trim.code, code), "exit %d %s (%s), expected %d %s",
		  trim.exit, trim.code, trim.text, exit, code);
	cr_assert(!part || (strstr(trim.text, part) && strstr(check.text, part)),
		  "\"%s\" is not named: %s", part, trim.text);
}

void victim_of(const char *name, const char *arg1, const char *arg2, int exit, const char *code)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, arg1, arg2);
	state_take(&v, &state);
	both_say(v.pid, &holding, exit, code, NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

bool is_root(void)
{
	return geteuid() == 0;
}

bool in_list(const char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}
