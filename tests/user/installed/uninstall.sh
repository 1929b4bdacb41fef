#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# uninstall.sh PREFIX: checks that make uninstall removes what make install has installed, and no
# files of others.
set -euo pipefail
prefix=$1
files() {
	find "$prefix" ! -type d | sort
}

rm -rf "$prefix"
mkdir -p "$prefix"/{bin,include/lockworks,lib/lockworks,lib/pkgconfig}
touch "$prefix"/{bin,include/lockworks,lib,lib/lockworks,lib/pkgconfig}/of_others
before=$(files)
"${MAKE:-make}" -s install PREFIX="$prefix" DESTDIR=
for file in bin/lockworks include/lockworks/lockworks.{h,hpp} lib/liblockworks.{a,so,so.0} \
	lib/lockworks/liblockworks-{preload,profile}.so lib/pkgconfig/lockworks.pc \
	lib/cmake/lockworks/lockworksConfig{,Version}.cmake lib/cps/lockworks.cps share/man/man1/lockworks{,-sim,-kernel-torture}.1 \
	share/bash-completion/completions/lockworks; do
	[[ -e $prefix/$file ]] || {
		echo "make install has left out $file"
		exit 1
	}
done
"${MAKE:-make}" -s uninstall PREFIX="$prefix" DESTDIR=
diff --label before --label 'after make uninstall' -u <(echo "$before") <(files)
rm "$prefix"/{include,lib}/lockworks/of_others
"${MAKE:-make}" -s install-lib uninstall PREFIX="$prefix" DESTDIR=
[[ ! -e $prefix/include/lockworks && ! -e $prefix/lib/lockworks && ! -e $prefix/lib/cmake/lockworks ]] || {
	echo "make uninstall has left an empty directory"
	exit 1
}
