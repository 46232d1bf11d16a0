#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Usage: deb.sh BUILD VERSION DATE
#
# Builds BUILD/deb/heapmedic_VERSION_amd64.deb with dpkg-buildpackage in a tree of its own: the sources, scripts/debian as debian/,
# and what is built already, so that nothing is compiled twice. The package's maintainer is who builds it: $DEBFULLNAME and $DEBEMAIL.
set -eu
cd "$(dirname "$0")/.."
build=$1 version=$2 date=$3
maintainer="${DEBFULLNAME:-The heapmedic packagers} <${DEBEMAIL:-packagers@heapmedic.invalid}>"

for tool in dpkg-buildpackage dh; do
	command -v $tool >/dev/null || {
		echo "deb: $tool is missing: apt-get install dpkg-dev debhelper" >&2
		exit 1
	}
done

top=$build/deb
tree=$top/heapmedic-$version
rm -rf "$top"
mkdir -p "$tree/build"
cp -a Makefile README.md agent inject repl scripts "$tree"
cp -a scripts/debian "$tree/debian"
for part in agent inject repl gen docs flags payload.bin payload-0.bin payload-0x12340000.bin payload-0.elf payload-0x12340000.elf \
	libheapmedic.a generate; do
	[ ! -e "$build/$part" ] || cp -a "$build/$part" "$tree/build"
done
[ ! -e heapmedic ] || cp -a heapmedic "$tree"

sed "s/@MAINTAINER@/$maintainer/" scripts/debian/control >"$tree/debian/control"
cat >"$tree/debian/changelog" <<END
heapmedic ($version) unstable; urgency=medium

  * See the history of the sources.

 -- $maintainer  $(date -u -R -d "$date")
END

# Variables of a make that has started this one are not for the one in there.
cd "$tree"
env -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL -u BUILD -u DESTDIR -u PREFIX dpkg-buildpackage -b -us -uc
