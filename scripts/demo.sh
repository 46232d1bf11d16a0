#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: demo.sh HEAPMEDIC RETAINED GROWING
#
# Leak or retained? Starts a sample program whose glibc keeps 300 MiB that nobody uses, lets heapmedic look at it and give the memory
# back; then one that holds on to what it allocates, which looks the same from outside, and is not.
set -u

heapmedic=$1
retained=$2
growing=$3
dir=$(mktemp -d) || exit 1
pid=

# The sample ends by its process id, however this script ends.
cleanup() {
	if [ -n "$pid" ]; then
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	fi
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

rss() {
	awk '/^Rss:/ { printf "%.1f MiB", $2 / 1024 }' "/proc/$pid/smaps_rollup"
}

show() {
	printf '\n$ %s -p %s %s\n' "$heapmedic" "$pid" "$*"
	"$heapmedic" -p "$pid" "$@" || {
		rc=$?
		echo "demo: heapmedic ended with exit code $rc" >&2
		exit "$rc"
	}
}

wait_for() { # WORD TIMES: in what the sample says
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(grep -c "$1" "$dir/out")" -lt "$2" ] || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.5
	done
	echo "demo: the sample program did not go on: $(cat "$dir/err")" >&2
	exit 1
}

# It runs until its standard input ends: the fifo's other end is ours, and goes when we go.
start() { # PROGRAM [ARG]
	rm -f "$dir/in"
	mkfifo "$dir/in" || exit 1
	: >"$dir/out"
	"$@" <"$dir/in" >"$dir/out" 2>"$dir/err" &
	pid=$!
	exec 9>"$dir/in"
	wait_for ready 1
}

finish() {
	exec 9>&-
	wait "$pid"
	rc=$?
	pid=
	[ $rc -eq 0 ] || {
		echo "demo: the sample program ended with $rc: $(cat "$dir/err")" >&2
		exit 1
	}
}

start "$retained"
before=$(rss)
echo "Process $pid ($retained): 8 threads have allocated 300 MiB and freed them again. The kernel still counts $before."
show check
show arenas
show diagnose
show trim
after=$(rss)
printf '\nThe kernel now counts %s, before it was %s.\n' "$after" "$before"
finish
echo "The sample program has checked itself all the while and ended well."

start "$growing" 64
printf '\nProcess %s (%s) has %s, and is about to allocate 64 MiB that it keeps.\n' "$pid" "$growing" "$(rss)"
show snapshot "$dir/before.hms"
printf l >&9
wait_for "done" 1
printf '\nNow it has %s: is that memory to be had back?\n' "$(rss)"
show diff "$dir/before.hms"
show diagnose
show trim
finish
