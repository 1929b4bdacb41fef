#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# deb.sh: build the Debian packages in build/deb, from the files that git knows. Rust is that of the
# user: Debian's is older than the workspace needs.
set -euo pipefail
version=$(scripts/version.sh)
tree=build/deb/lockworks-$version
rm -rf build/deb
mkdir -p "$tree"
git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory="$tree"
mv "$tree/packaging/debian" "$tree/debian"
cat >"$tree/debian/changelog" <<END
lockworks ($version) unstable; urgency=medium

  * CHANGELOG.md has the changes.

 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(git log -1 --format=%aD)
END
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target/deb}")
export CARGO_TARGET_DIR
cd "$tree"
env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage --build=binary --no-sign --no-check-builddeps
cd ..
rm -rf "lockworks-$version"
ls -- *.deb
