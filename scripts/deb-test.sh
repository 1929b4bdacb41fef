#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# deb-test.sh: judge the packages of build/deb, and install, use and remove them in a new Debian.
set -euo pipefail
cd build/deb
lintian --fail-on error,warning --allow-root ./*.changes

script=$(mktemp)
trap 'rm -f "$script"' EXIT
packages=(liblockworks0_*.deb liblockworks-dev_*.deb lockworks_*.deb)
cat >"$script" <<'END'
set -eu
cd /tmp
cat >counter.c <<'C'
#include <lockworks/lockworks.h>
static struct lw_mutex lock = LW_MUTEX_INIT;
int main(void)
{
	lw_mutex_lock(&lock);
	lw_mutex_unlock(&lock);
	return !lw_lock_type_find("cna");
}
C
cc -Werror counter.c $(pkg-config --cflags --libs lockworks) -o counter
./counter
LOCKWORKS_VERBOSE=1 lockworks run --lock mutex -- apt-get --version 2>&1 | grep "'mutex' serves"
lockworks profile -- apt-get --version >/dev/null
lockworks sim --lock cna --threads 4 >/dev/null
test -e /usr/share/man/man1/lockworks.1.gz
dpkg --purge lockworks liblockworks-dev liblockworks0
! find / -xdev -path /packages -prune -o -path /tmp -prune -o -path /proc -prune -o -name '*lockworks*' -print | grep .
END
mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,pkg-config \
	--customize-hook='mkdir "$1/packages"' \
	--customize-hook="copy-in ${packages[*]} /packages" \
	--customize-hook='chroot "$1" sh -c "dpkg --install /packages/*.deb"' \
	--customize-hook="chroot \"\$1\" sh <'$script'" \
	bookworm /dev/null
echo 'the packages were installed, used and removed'
