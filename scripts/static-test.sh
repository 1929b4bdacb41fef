#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# static-test.sh: run the static command of DIRECTORY in a root that has nothing else, and what it loads into programs
# in a new Debian without a compiler.
#
# usage: scripts/static-test.sh DIRECTORY
set -euo pipefail
fail() {
	echo "static-test: $*" >&2
	exit 1
}
built=$1
work=$(mktemp -d)
trap 'umount -q "$work/root/proc" 2>/dev/null || true; rm -rf "$work"' EXIT
! readelf --program-headers "$built/bin/lockworks" | grep INTERP >/dev/null || fail "$built/bin/lockworks needs a loader"

root=$work/root
mkdir -p "$root/tmp" "$root/proc" "$root/sys"
cp "$built/bin/lockworks" examples/check/mylock.c "$root"
mount -t proc proc "$root/proc"
inside() {
	chroot "$root" /lockworks "$@"
}
inside --version
inside locks >/dev/null
inside sim --lock cna,hq --threads 4 >/dev/null
inside check --lock ticket --quick >/dev/null
inside torture --lock mutex --threads 2 --seconds 0.1 --rounds 1 >/dev/null
inside report --quick -o /tmp/report.html >"$work/printed" 2>&1 || fail "report: $(tail -1 "$work/printed")"
[[ -s $root/tmp/report.html ]] || fail "report wrote no page"
# What it cannot do there, it says in one line.
for arguments in 'check --source /mylock.c' 'run -- /lockworks --version'; do
	read -r -a words <<<"$arguments"
	status=0
	lines=$(inside "${words[@]}" 2>&1) || status=$?
	[[ $status = 2 && $(wc -l <<<"$lines") = 1 ]] || fail "'$arguments' ended with status $status: $lines"
	echo "$lines"
done
echo 'the command ran in a root without anything'

cat >"$work/script" <<'END'
set -eu
cd /opt/*/bin
LOCKWORKS_VERBOSE=1 ./lockworks run --lock mutex -- apt-get --version 2>&1 | grep "'mutex' serves"
./lockworks profile -- apt-get --version >/dev/null
END
mmdebstrap --quiet --variant=apt --customize-hook="copy-in $built /opt" \
	--customize-hook="chroot \"\$1\" sh <'$work/script'" bookworm /dev/null
echo 'and its libraries in programs of another system'
