// SPDX-License-Identifier: GPL-3.0-or-later
/* The manual and the completions that are built ($DOCS), by the programs that read them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "victim.h"

static const char *document(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];
	const char *docs = getenv("DOCS");

	cr_assert_not_null(docs, "$DOCS is where the built documents are");
	snprintf(p, sizeof(path[0]), "%s/%s", docs, name);
	return p;
}

static void run_program(struct run *r, const char *program, const char *const *args,
			const char *input)
{
	const struct run_opts o = { .program = program, .input = input };

	run_with(r, &o, args);
}

static bool is_installed(const char *name)
{
	char command[100];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

static const char *const pages[] = { "heapmedic.1", "heapmedic-json.5" };

Test(documents, groff_has_nothing_against_the_pages)
{
	if (!is_installed("man"))
		cr_skip_test("man is missing");
	for (size_t i = 0; i < 2; i++) {
		const char *args[] = { "-l", "--warnings", document(pages[i]), NULL };
		struct run r;

		run_program(&r, "man", args, NULL);
		cr_expect_eq(r.exit, 0);
		cr_expect_str_eq(r.err, "");
		cr_expect_not_null(strstr(r.out, "EXIT STATUS"), "%s", r.out);
		run_free(&r);
	}
}

Test(documents, mandoc_has_nothing_against_the_pages)
{
	if (!is_installed("mandoc"))
		cr_skip_test("mandoc is missing");
	for (size_t i = 0; i < 2; i++) {
		const char *args[] = { "-Tlint", "-Wwarning", document(pages[i]), NULL };
		struct run r;

		run_program(&r, "mandoc", args, NULL);
		cr_expect_eq(r.exit, 0, "%s", r.out);
		cr_expect_str_eq(r.out, "");
		run_free(&r);
	}
}

/* ---- completion */

static const struct {
	const char *line;    /* what is typed; the last word is to be completed */
	const char *has;     /* an offer among others, with a blank on each side */
	const char *without; /* and none of this one; NULL: nothing to say */
} lines[] = {
	{ "heapmedic tri", " trim ", "threads" },
	{ "heapmedic -p 1 ", " diagnose ", "--json" },
	{ "heapmedic 4711 gua", " guard ", "trim" },
	{ "heapmedic --js", " --json ", "--yes" },
	{ "heapmedic -p 1 trim --min", " --min-yield ", "--force" },
	{ "heapmedic -p 1 trim --j", " --json ", NULL },
	{ "heapmedic -p 1 maps --", " --all ", "--min-yield" },
	{ "heapmedic -p 1 --via d", " direct ", "proxy" },
	{ "heapmedic --color al", " always ", "auto" },
	{ "heapmedic -p 1 prof st", " status ", "dump" },
	{ "heapmedic -p 1 mallopt M_AR", " M_ARENA_MAX ", "M_TRIM" },
	{ "heapmedic -p 1 mallctl stats.all", " stats.allocated ", "opt." },
	{ "heapmedic -p 1 facts glibc.tr", " glibc.trimmable ", "rss" },
	{ "heapmedic -p 1 decay mu", " muzzy ", "dirty" },
	{ "heapmedic help ch", " check ", "trim" },
	{ "heapmedic -f /etc/pass", " /etc/passwd ", "trim" },
	{ "heapmedic -p 1 diff /etc/pass", " /etc/passwd ", "trim" },
	{ "heapmedic -n redis-server --passive met", " metrics ", "trim" },
	{ "heapmedic -p 1 guard --when ", "", "trim" },
};

/* The words of line as bash has them, then what its function offers. */
static void complete_bash(struct run *r, const char *line)
{
	static const char script[] =
		". \"$1\"\n"
		"read -ra COMP_WORDS <<< \"$2\"\n"
		"[[ $2 != *' ' ]] || COMP_WORDS+=('')\n"
		"COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2}\n"
		"_heapmedic heapmedic \"${COMP_WORDS[COMP_CWORD]}\" "
		"\"${COMP_WORDS[COMP_CWORD - 1]}\"\n"
		"echo \" ${COMPREPLY[*]} \"\n";
	const char *args[] = { "-c", script, "bash", document("heapmedic.bash"), line, NULL };

	run_program(r, "bash", args, NULL);
}

Test(documents, bash_completes)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct run r;

		complete_bash(&r, lines[i].line);
		cr_expect_eq(r.exit, 0);
		cr_expect_str_eq(r.err, "");
		cr_expect_not_null(strstr(r.out, lines[i].has), "'%s': %s", lines[i].line, r.out);
		cr_expect(!lines[i].without || !strstr(r.out, lines[i].without), "'%s': %s",
			  lines[i].line, r.out);
		run_free(&r);
	}
}

/* An option's value behind =, which readline makes a word of its own. */
Test(documents, bash_completes_behind_an_equals_sign)
{
	static const char script[] = ". \"$1\"; COMP_WORDS=(heapmedic --via = d) COMP_CWORD=3; "
				     "_heapmedic; echo \"${COMPREPLY[*]}\"; "
				     "COMP_WORDS=(heapmedic --via =) COMP_CWORD=2; "
				     "_heapmedic; echo \"${COMPREPLY[*]}\"";
	const char *args[] = { "-c", script, "bash", document("heapmedic.bash"), NULL };
	struct run r;

	run_program(&r, "bash", args, NULL);
	cr_expect_str_eq(r.err, "");
	cr_expect_str_eq(r.out, "direct\nauto proxy direct\n");
	run_free(&r);
}

/* The pid and the name of a process that is there. */
Test(documents, bash_completes_processes)
{
	char line[64], want[64];
	struct victim v;
	struct run r;

	victim_start_named(&v, "retained", "1", NULL);
	snprintf(line, sizeof(line), "heapmedic -p %d", (int)v.pid);
	snprintf(want, sizeof(want), " %d ", (int)v.pid);
	complete_bash(&r, line);
	cr_expect_not_null(strstr(r.out, want), "%s", r.out);
	run_free(&r);
	complete_bash(&r, "heapmedic -n retai");
	cr_expect_not_null(strstr(r.out, " retained "), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

/* In a terminal of its own: what stands on the line when Tab was pressed, or is listed below it. */
Test(documents, zsh_completes)
{
	static const char script[] =
		"zmodload zsh/zpty || exit 1\n"
		"cp $1 $2/_heapmedic || exit 1\n"
		"zpty z 'TERM=dumb zsh -f -i'\n"
		"zpty -w z \"PS1='' fpath=($2 \\$fpath); autoload -Uz compinit; compinit -u -D; "
		"unsetopt zle_bracketed_paste; setopt no_beep no_list_ambiguous; echo rea''dy\"\n"
		"zpty -r -m z x '*ready*' || exit 1\n"
		"ask() { # LINE WANTED\n"
		"  zpty -n -w z \"$1\"$'\\t'\n"
		"  zpty -r -m z x \"*$2*\" || exit 1\n"
		"  print -r -- \"$1: $2\"\n"
		"  zpty -n -w z $'\\x15'\n"
		"}\n"
		"ask 'heapmedic tri' 'trim '\n"
		"ask 'heapmedic 4711 dia' 'diagnose '\n"
		"ask 'heapmedic -p 1 trim --min' 'min-yield'\n"
		"ask 'heapmedic -p 1 mallopt M_ARENA_M' 'ARENA_MAX'\n"
		"ask 'heapmedic --color=al' 'always'\n"
		"zpty -d z\n";
	const char *const syntax[] = { "-n", document("_heapmedic"), NULL };
	char dir[] = "/tmp/heapmedic-zsh-XXXXXX", remove[64];
	const char *args[] = {
		"60", "zsh", "-fc", script, "zsh", document("_heapmedic"), dir, NULL
	};
	struct run r;

	if (!is_installed("zsh"))
		cr_skip_test("zsh is missing");
	cr_assert_not_null(mkdtemp(dir));
	run_program(&r, "zsh", syntax, NULL);
	cr_expect_eq(r.exit, 0);
	cr_expect_str_eq(r.err, "");
	run_free(&r);
	run_program(&r, "timeout", args, NULL);
	cr_expect_eq(r.exit, 0, "%s%s", r.out, r.err);
	cr_expect_not_null(strstr(r.out, "always"), "%s", r.out);
	run_free(&r);
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	cr_expect_eq(system(remove), 0);
}
