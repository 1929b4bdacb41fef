#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rpm.sh: build the RPM packages in build/rpm, from the files that git knows. Rust is that of the user.
set -euo pipefail
version=$(scripts/version.sh)
name=lockworks-$version
rm -rf build/rpm
mkdir -p build/rpm/SOURCES
git ls-files -z | tar --null --files-from=- --transform="flags=rSH;s|^|$name/|" -czf "build/rpm/SOURCES/$name.tar.gz"
sed "s/@version@/$version/" packaging/lockworks.spec >build/rpm/lockworks.spec
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target/rpm}")
# No path of the machine that builds is in the packages.
export CARGO_TARGET_DIR LOCKWORKS_CHECKOUT=
export RUSTFLAGS="--remap-path-prefix=$PWD/build/rpm/BUILD/$name=. \
	--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$CARGO_TARGET_DIR=target"
# Debian's rpm does not know of Debian's packages, and its loader does not look into lib64.
options=()
[[ ! -e /etc/debian_version ]] || options=(--nodeps --define "_libdir /usr/lib/$(cc -print-multiarch)")
env -u MAKEFLAGS -u MAKELEVEL rpmbuild -bb --define "_topdir $PWD/build/rpm" \
	--define "prefix_maps -ffile-prefix-map=$PWD/build/rpm/BUILD/$name=. -ffile-prefix-map=$CARGO_TARGET_DIR=target" \
	"${options[@]}" build/rpm/lockworks.spec
mv build/rpm/RPMS/*/*.rpm build/rpm
rm -rf build/rpm/{BUILD,BUILDROOT,RPMS,SRPMS}
ls build/rpm/*.rpm
