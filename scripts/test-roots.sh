#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: test-roots.sh BUILD TEST-PROGRAM...
#
# Runs live tests on victims of other Debian releases: 11, 12, 13 and sid, each with its own compiler, glibc and jemalloc in a root
# of its own below BUILD/roots, made by debootstrap when it is not there yet. Root only. $ROOTS chooses the releases. The last line is
# 'N passed, N failed, N skipped' over all of them.
set -u

[ "$(id -u)" -eq 0 ] || {
	echo "test-roots: debootstrap and chroot need root" >&2
	exit 1
}

# The mounts below are seen by this process and its children only, and end with them.
[ -n "${TEST_ROOTS_MOUNTS:-}" ] || TEST_ROOTS_MOUNTS=private exec unshare --mount --propagation private "$0" "$@"

build=$1
shift
here=$(dirname "$0")
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

"$here/install-deps.sh" roots || exit 1

packages=gcc,libc6-dev,make,pkg-config,libjemalloc2,libjemalloc-dev

make_root() { # RELEASE DIRECTORY
	[ "$(cat "$2/.complete" 2>/dev/null)" != $packages ] || return 0
	rm -rf "$2"
	debootstrap --variant=minbase --include=$packages "$1" "$2" >"$log" 2>&1 && echo $packages >"$2/.complete" && return 0
	tail -n 5 "$log" >&2
	return 1
}

# Blocks that nobody reads are what many victims are there for: gcc 16 leaves out more of these than its predecessors.
build() { # ROOT NAME SOURCE [FLAGS]
	[ "$1/victims/$2" -nt "$1/src/$3.c" ] && [ "$1/victims/$2" -nt "$newest" ] && return 0
	# shellcheck disable=SC2086
	chroot "$1" gcc -std=gnu11 -O2 -g -D_GNU_SOURCE -pthread -fno-builtin-{malloc,calloc,realloc,free} ${4:-} -o "/victims/$2" "/src/$3.c" -ldl -lrt -lm
}

# The victims that need nothing but libc, with the release's own compiler.
build_victims() { # ROOT
	mkdir -p "$1/src" "$1/victims" && cp -p tests/victims/*.c tests/victims/*.h "$1/src/" || return 1
	newest=
	for header in "$1"/src/*.h; do
		{ [ -n "$newest" ] && [ ! "$header" -nt "$newest" ]; } || newest=$header
	done
	for source in "$1"/src/*.c; do
		name=$(basename "$source" .c)
		case $name in sampled | profiled) continue ;; esac # with jemalloc, below
		build "$1" "$name" "$name" || return 1
	done
	build "$1" static eight -static && build "$1" shapesstatic shapes -static && build "$1" cachedstatic cached -static || return 1
	callable=-static
	for name in pthread_attr_{init,setstack,setdetachstate,destroy} malloc_{stats,info,trim}; do
		callable+=" -Wl,-u,$name"
	done
	build "$1" threadstatic shapes "$callable" && build_jemalloc "$1"
}

# Those with jemalloc, as the Makefile does it.
build_jemalloc() { # ROOT
	mkdir -p "$1/src/tests" && cp -p Makefile "$1/src/" && cp -pr tests/victims "$1/src/tests/" || return 1
	chroot "$1" make -s -C /src BUILD=/src/build VICTIMS=/victims VICTIM_FLAGS='-std=gnu11 -O2 -g -D_GNU_SOURCE -pthread' \
		/victims/{jemlinked,sampled,profiled,jem-{static,nopie,whole,hidden,rust,bare,host},jem-{hidden,exported,stripped,symbolic,functions,plain,liar}.so}
}

for release in ${ROOTS:-bullseye bookworm trixie sid}; do
	root=$build/roots/$release
	begun=$SECONDS
	mkdir -p "$build/roots"
	echo "==== $release"
	if ! make_root "$release" "$root" || ! build_victims "$root"; then
		echo "test-roots: $release could not be made ready" >&2
		failed=$((failed + 1))
		continue
	fi
	mkdir -p "$root/dev/shm"
	mount --bind /proc "$root/proc" && mount -t tmpfs shm "$root/dev/shm" || exit 1
	jemalloc=$(chroot "$root" dpkg-query -W -f "\${source:Upstream-Version}" libjemalloc2)
	echo "ready after $((SECONDS - begun)) s, glibc $(chroot "$root" dpkg-query -W -f "\${Version}" libc6), jemalloc $jemalloc"
	VICTIM_JEMALLOC=$jemalloc VICTIM_ROOT=$(realpath "$root") VICTIMS=/victims "$here/run-tests.sh" "$build" "$@" >"$log" 2>&1
	rc=$?
	cat "$log"
	umount "$root/proc" "$root/dev/shm"
	echo "==== $release: $((SECONDS - begun)) s"
	if read -r p f s < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$log" | tail -n 1); then
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	fi
	[ $rc -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
