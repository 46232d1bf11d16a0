#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Format check, cppcheck, clang-tidy, shellcheck and ansible-lint over everything under version control (and what is about to be).
# All run even when one complains; the result is not zero then.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build || exit 1
rc=0

for tool in clang-format cppcheck clang-tidy shellcheck ansible-lint; do
	command -v $tool >/dev/null || {
		echo "lint: $tool is missing: run scripts/install-deps.sh lint" >&2
		exit 1
	}
done

list() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -e "$f" ] || echo "$f"; done; }
sources=$(list '*.c' '*.h')
# Analysed with the project's flags; victims, seeds and the payload are built with their own.
own=$(list 'inject/*.c' 'agent/*.c' 'repl/*.c' 'tests/unit/*.c' 'tests/live/*.c' 'tests/torture/*.c' 'tests/bench/*.c' 'tests/fuzz/*.c' | grep -v '^inject/payload/\|^tests/fuzz/seeds/')

# Such as when git does not trust the directory's owner: nothing found is not nothing wrong.
[ -n "$own" ] || {
	echo "lint: git lists no sources here" >&2
	exit 1
}

say() {
	echo "  LINT    $1"
}

say clang-format
echo "$sources" | xargs clang-format --dry-run -Werror || rc=1

say cppcheck
echo "$own" | xargs cppcheck --quiet -j 2 --std=c11 --language=c --platform=unix64 -D_GNU_SOURCE -D__x86_64__ -DHM_VERSION='"0"' \
	--enable=warning,performance,portability --inline-suppr --suppressions-list=.cppcheck-suppressions \
	--error-exitcode=1 || rc=1

say clang-tidy
# Flags come from compile_flags.txt. The count of warnings in system headers goes to stderr and is of no interest.
echo "$own" | xargs -P 2 -n 3 clang-tidy --quiet 2>build/lint-tidy.log ||
	{ rc=1; grep -v 'warnings\? generated' build/lint-tidy.log >&2; }

say shellcheck
{ list '*.sh'; list '.ci/run'; } | xargs shellcheck || rc=1

say ansible-lint
ansible-lint --offline --nocolor -q scripts/ansible/*.yml || rc=1

[ $rc -eq 0 ] && echo "lint: clean"
exit $rc
