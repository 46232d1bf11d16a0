#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: fuzz.sh BUILD SEEDS SECONDS NAME...
#
# Runs the fuzz programs BUILD/fuzz_NAME one after another, SECONDS in all but each for 2 at least, each on its seeds
# (tests/fuzz/corpus/NAME and SEEDS/NAME) and on what earlier runs have found (BUILD/found/NAME). Stops at the first input that
# crashes, leaks, takes longer than 5 seconds or more than 2 GiB; its path is the last line, and the exit code is not zero.
# FUZZ_SEED=N tries the same inputs in the same order each time: what gates a change must not depend on chance.
set -u

build=$1 seeds=$2 seconds=$3
shift 3
[ $# -gt 0 ] || {
	echo "fuzz: no targets" >&2
	exit 2
}
each=$((seconds / $#))
[ $each -ge 2 ] || each=2
export UBSAN_OPTIONS=print_stacktrace=1

for name; do
	found=$build/found/$name crash=$build/crash/$name-
	mkdir -p "$found" "$build/crash" "tests/fuzz/corpus/$name" "$seeds/$name" || exit 1
	log=$build/crash/$name.log
	if ! "$build/fuzz_$name" -max_total_time=$each -seed="${FUZZ_SEED:-0}" -timeout=5 -rss_limit_mb=2048 -max_len=32768 -print_final_stats=1 \
		-artifact_prefix="$crash" "$found" "tests/fuzz/corpus/$name" "$seeds/$name" >"$log" 2>&1 </dev/null; then
		grep -v '^#' "$log" | tail -n 80
		input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
		echo "fuzz: $name fails; again with: $build/fuzz_$name ${input:-(no input was written, see $log)}"
		exit 1
	fi
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	cover=$(sed -n 's/.* \(cov: [0-9]* ft: [0-9]*\) .*/\1/p' "$log" | tail -n 1)
	printf '%-12s %10s runs in %s s, %s\n' "$name" "$runs" "$each" "$cover"
	# A program that has run nothing has tested nothing.
	[ "${runs:-0}" -gt 0 ] || exit 1
done
