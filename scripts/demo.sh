#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: demo.sh HEAPMEDIC SAMPLE
#
# Starts a sample program whose glibc keeps 300 MiB that nobody uses, and lets heapmedic look at it and give the memory back.
set -u

heapmedic=$1
sample=$2
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

# It runs until its standard input ends: the fifo's other end is ours, and goes when we go.
mkfifo "$dir/in" || exit 1
"$sample" <"$dir/in" >"$dir/out" 2>"$dir/err" &
pid=$!
exec 9>"$dir/in"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	grep -q ready "$dir/out" 2>/dev/null && break
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.5
done
grep -q ready "$dir/out" || {
	echo "demo: the sample program did not start: $(cat "$dir/err")" >&2
	exit 1
}

before=$(rss)
echo "Process $pid ($sample): 8 threads have allocated 300 MiB and freed them again. The kernel still counts $before."
show check
show arenas
show trim
after=$(rss)
printf '\nThe kernel now counts %s, before it was %s.\n' "$after" "$before"

exec 9>&-
wait "$pid"
rc=$?
pid=
if [ $rc -ne 0 ]; then
	echo "demo: the sample program ended with $rc: $(cat "$dir/err")" >&2
	exit 1
fi
echo "The sample program has checked itself all the while and ended well."
