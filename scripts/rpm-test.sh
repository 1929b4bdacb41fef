#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# rpm-test.sh: install, use and remove the packages of build/rpm in a new Debian, whose rpm knows of no others
# that they may need.
set -euo pipefail
use=$PWD/scripts/packaged-use.sh
cd build/rpm
[[ $(rpm -qp --requires lockworks-devel-*.rpm) == *'liblockworks('*') = '* ]]
[[ $(rpm -qp --provides liblockworks-*.rpm) == *'liblockworks.so.0(LOCKWORKS_0.1)'* ]]
packages=(*.rpm)
mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,pkg-config,rpm \
	--customize-hook='mkdir "$1/packages"' \
	--customize-hook="copy-in ${packages[*]} $use /packages" \
	--customize-hook='chroot "$1" sh -c "rpm --install --nodeps /packages/*.rpm && ldconfig"' \
	--customize-hook='chroot "$1" sh /packages/packaged-use.sh rpm --erase lockworks lockworks-devel liblockworks' \
	bookworm /dev/null
echo 'the packages were installed, used and removed'
