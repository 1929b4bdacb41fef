#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# deb-test.sh: judge the packages of build/deb, and install, use and remove them in a new Debian.
set -euo pipefail
use=$PWD/scripts/packaged-use.sh
cd build/deb
lintian --fail-on error,warning --allow-root ./*.changes
packages=(liblockworks0_*.deb liblockworks-dev_*.deb lockworks_*.deb)
mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,pkg-config \
	--customize-hook='mkdir "$1/packages"' \
	--customize-hook="copy-in ${packages[*]} $use /packages" \
	--customize-hook='chroot "$1" sh -c "dpkg --install /packages/*.deb"' \
	--customize-hook='chroot "$1" sh /packages/packaged-use.sh dpkg --purge lockworks liblockworks-dev liblockworks0' \
	bookworm /dev/null
echo 'the packages were installed, used and removed'
