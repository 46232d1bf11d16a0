#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: run-tests.sh BUILD TEST-PROGRAM...
#
# Runs Criterion programs one after another and adds up what really ran. The last line is 'N passed, N failed, N skipped'.
# Not zero when a test failed, when a program ran no test or ended without its report, when a sanitizer found something (Criterion
# calls a test passed whose process leaked), and, with CI=true, when a test was skipped because something is missing or not
# installed: on CI everything that can be installed is installed.
#
# With TORTURE=full it stops at the first program that found harm.
set -u

build=$1
shift
passed=0 failed=0 skipped=0
# For one test. Criterion takes it also where a test allows itself more (.timeout): it is for what hangs, nothing else.
limit=300
[ "${TORTURE:-}" != full ] || limit=3600
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Every process below inherits these. The exit codes are none of the program's own, so that a report is never taken for a result.
# gcc's UBSan writes to stderr whatever log_path says; it ends the process, which its test notices.
if [ -n "${SAN:-}" ]; then
	export ASAN_OPTIONS="log_path=$tmp/san:exitcode=99:detect_leaks=1"
	export UBSAN_OPTIONS="exitcode=98:print_stacktrace=1"
fi

complain() {
	printf '%s\n' "$*" >&2
	failed=$((failed + 1))
}

# Processes that the program has started still carry its environment, also when their parent is gone.
left_behind() { # PROGRAM
	grep -lzsx "HEAPMEDIC_TEST_RUN=$$" /proc/[0-9]*/environ >"$tmp/left"
	while read -r environ; do
		pid=${environ#/proc/}
		pid=${pid%/environ}
		complain "$1 left process $pid behind: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		kill -KILL "$pid"
	done <"$tmp/left"
}

# What Criterion's own process has not freed when two tests end at the same time: no frame of it is ours.
only_criterion() { # LOG
	! grep 'ERROR: ' "$1" | grep -qv 'LeakSanitizer' && ! grep '^ *#[1-9]' "$1" | grep -qv 'libcriterion\.so'
}

run() { # PROGRAM
	report=$tmp/tap
	begun=$(date +%s)
	rm -f "$report" "$tmp"/san.*
	echo "== ${1#"$build"/}"
	# Live tests measure what other processes do: one at a time. Torture is long, and may meet company.
	case $1 in
	*/unit/*) jobs=2 ;;
	*/torture/test_servers) jobs=1 ;;
	*/torture/*) jobs=$(nproc) ;;
	*) jobs=1 ;;
	esac
	# What it says goes through a file: a process that a test leaves behind must not keep our own output open.
	HEAPMEDIC_TEST_RUN=$$ "$1" --tap="$report" --short-filename -j"${jobs:-1}" --timeout "${TEST_TIMEOUT:-$limit}" \
		${TORTURE:+--fail-fast} \
		</dev/null >"$tmp/said" 2>&1
	rc=$?
	cat "$tmp/said"
	left_behind "$1"
	if [ ! -s "$report" ]; then
		complain "$1 ended with $rc and without a report"
		return
	fi
	s=$(grep -c '^ok .* # SKIP ' "$report")
	p=$(($(grep -c '^ok ' "$report") - s))
	f=$(grep -c '^not ok ' "$report")
	planned=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$report" | awk '{n += $1} END {print n + 0}')
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "   $(($(date +%s) - begun)) s"
	grep '^not ok ' "$report" | sed 's/^/   /'
	sed -n 's/^ok - \(.* # SKIP .*\)/   skipped \1/p' "$report"
	[ "$planned" -gt 0 ] || complain "$1 has no tests"
	[ $((p + f + s)) -eq "$planned" ] || complain "$1: $planned tests planned, $((p + f + s)) reported"
	forgiven=
	for log in "$tmp"/san.*; do
		# LeakSanitizer also writes when it gives up, because its process is traced or killed: no finding.
		grep -qs 'ERROR: \|runtime error:' "$log" || continue
		if only_criterion "$log"; then
			forgiven=99
			continue
		fi
		head -n 60 "$log" >&2
		complain "$1: a sanitizer found something"
	done
	[ $rc -eq 0 ] || [ "$rc" = "$forgiven" ] || [ "$f" -gt 0 ] || complain "$1 ended with $rc though no test failed"
	if [ "${CI:-}" = true ]; then
		n=$(grep -ciE '^ok .* # SKIP .*(missing|install)' "$report")
		[ "$n" -eq 0 ] || complain "$1: $n skipped for something that CI must have"
	fi
}

for program; do
	run "$program"
	[ -z "${TORTURE:-}" ] || [ $failed -eq 0 ] || break
done
[ $((passed + failed)) -gt 0 ] || complain "no test was run"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
