#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: install-deps.sh GROUP...      GROUP is build, test, lint, fuzz or roots
#
# Installs with apt what is missing on Debian and Ubuntu, and does nothing (not even apt-get update) when nothing is. Who is not
# root is told the command. Services that come with a package (redis, databases) are not started.
set -u

# One line per need: how to see that it is there, and the package that brings it. A command may come from several packages
# (javac, go), a library is asked for by its package.
needs() {
	case $1 in
	build) cat <<-END ;;
		cmd gcc gcc
		cmd make make
		cmd pkg-config pkg-config
		cmd objcopy binutils
		cmd readelf binutils
		pkg libc6-dev libc6-dev
		pkg libunwind-dev libunwind-dev
		pkg libelf-dev libelf-dev
		pkg libdw-dev libdw-dev
		pkg libiberty-dev libiberty-dev
		pkg libjansson-dev libjansson-dev
		pkg libmicrohttpd-dev libmicrohttpd-dev
		pkg libexpat1-dev libexpat1-dev
		pkg libreadline-dev libreadline-dev
		pkg zlib1g-dev zlib1g-dev
		pkg liblzma-dev liblzma-dev
		pkg libbz2-dev libbz2-dev
	END
	test) cat <<-END ;;
		cmd g++ g++
		cmd addr2line binutils
		cmd dwz dwz
		cmd xz xz-utils
		pkg libcriterion-dev libcriterion-dev
		cmd redis-server redis-server
		cmd go golang-go
		cmd java default-jdk-headless
		cmd javac default-jdk-headless
		cmd python3 python3
		pkg libc6-dbg libc6-dbg
		cmd setpriv util-linux
		cmd mount mount
		cmd nsenter util-linux
		cmd strace strace
		cmd prometheus prometheus
		cmd promtool prometheus
		cmd man man-db
		cmd mandoc mandoc
		cmd dpkg-buildpackage dpkg-dev
		cmd dh debhelper
		cmd lintian lintian
		cmd zsh zsh
		cmd gdb gdb
		cmd musl-gcc musl-tools
		pkg libjemalloc2 libjemalloc2
		pkg libjemalloc-dev libjemalloc-dev
		cmd jeprof libjemalloc-dev
		cmd perl perl
		cmd addr2line binutils
		pkg libgoogle-perftools-dev libgoogle-perftools-dev
		pkg libmimalloc-dev libmimalloc-dev
		lib32 - gcc-multilib
		file /usr/lib/postgresql/*/bin/postgres postgresql
		file /usr/sbin/mariadbd mariadb-server
		cmd mariadb mariadb-client
		file /usr/sbin/nginx nginx
		cmd memcached memcached
		cmd node nodejs
		cmd systemd-analyze systemd
		cmd ansible-playbook ansible-core
		pkg python3-yaml python3-yaml
		pkg python3-jsonschema python3-jsonschema
	END
	lint) cat <<-END ;;
		cmd clang clang
		cmd clang-format clang-format
		cmd clang-tidy clang-tidy
		cmd cppcheck cppcheck
		cmd shellcheck shellcheck
		cmd git git
		cmd ansible-lint ansible-lint
	END
	fuzz) cat <<-END ;;
		cmd clang clang
		fuzzer - libclang-rt-dev
	END
	roots) cat <<-END ;;
		cmd debootstrap debootstrap
		cmd unshare util-linux
	END
	*)
		echo "install-deps: unknown group $1: build, test, lint, fuzz and roots are known" >&2
		return 1
		;;
	esac
}

there() { # KIND NAME
	case $1 in
	cmd) command -v "$2" >/dev/null 2>&1 ;;
	# a pattern; what is in /usr/sbin is in no user's PATH
	file)
		# shellcheck disable=SC2086
		set -- $2 && [ -e "$1" ]
		;;
	pkg) dpkg-query -W -f '${db:Status-Abbrev}' "$2" 2>/dev/null | grep -q '^ii' ;;
	fuzzer) [ -e "$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a 2>/dev/null)" ] ;;
	lib32) [ -e "$(gcc -m32 -print-file-name=libgcc.a 2>/dev/null)" ] && [ -e "$(gcc -m32 -print-file-name=crt1.o 2>/dev/null)" ] ;;
	esac
}

[ $# -gt 0 ] || set -- build
command -v dpkg-query >/dev/null || {
	echo "install-deps: this is neither Debian nor Ubuntu; what is needed stands in $0" >&2
	exit 1
}
for group; do
	needs "$group" >/dev/null || exit 2
done
missing=$(for group; do needs "$group"; done | while read -r kind name package; do
	there "$kind" "$name" || echo "$package"
done | sort -u | tr '\n' ' ')
missing=${missing% }
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "install-deps: missing: $missing" >&2
	echo "install-deps: run: sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing" >&2
	exit 1
fi

# A package's own start script asks policy-rc.d whether it may start its service: 101 is no (invoke-rc.d(8)).
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy || exit 1
	trap 'rm -f $policy' EXIT
	trap 'exit 1' INT TERM HUP
fi
echo "install-deps: installing $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q </dev/null || exit 1
# shellcheck disable=SC2086 # a list of packages
apt-get install -y -q --no-install-recommends $missing </dev/null || exit 1
# Where systemd runs, a service that was not there before must not start at the next boot either.
[ -d /run/systemd/system ] || exit 0
for service in redis-server postgresql mariadb nginx memcached prometheus prometheus-node-exporter; do
	case " $missing" in
	*" $service"*) systemctl disable --now $service >/dev/null 2>&1 || true ;;
	esac
done
