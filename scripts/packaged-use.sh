#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# packaged-use.sh REMOVE...: in a new system where packages have installed Lockworks, use all of it. Then the
# command REMOVE... removes the packages, and nothing of them may be left.
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
# shellcheck disable=SC2046 # each option is a word
cc -Werror counter.c $(pkg-config --cflags --libs lockworks) -o counter
./counter
LOCKWORKS_VERBOSE=1 lockworks run --lock mutex -- apt-get --version 2>&1 | grep "'mutex' serves"
lockworks profile -- apt-get --version >/dev/null
lockworks sim --lock cna --threads 4 >/dev/null
ls /usr/share/man/man1/lockworks.1* >/dev/null
"$@"
! find / -xdev -path /packages -prune -o -path /tmp -prune -o -path /proc -prune -o -name '*lockworks*' -print | grep .
