#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# reproducible-test.sh: build what a release has from the newest commit in two directories, and compare the bytes.
# build/reproducible keeps both, so that those that differ can be looked at.
#
# usage: scripts/reproducible-test.sh [PART...]     archive, crate, wheel, static, deb; without one: all
set -euo pipefail
parts=("$@")
((${#parts[@]})) || parts=(archive crate wheel static deb)
version=$(scripts/version.sh)
name=lockworks-$version
tools=$PWD/build/python
base=$PWD/build/reproducible
unset CARGO_TARGET_DIR
rm -rf "$base"
mkdir -p "$base"
# Of different lengths: also an offset that depends on the path shows.
directories=("$base/a" "$base/another")

build() { # the part, in the directory of a clone
	case $1 in
	archive)
		"${MAKE:-make}" --no-print-directory archive
		cp build/archive/* out
		;;
	crate)
		cargo package --quiet --locked --no-verify -p lockworks
		cp "target/package/$name.crate" out
		;;
	wheel)
		ln -s "$tools" build/python
		"${MAKE:-make}" --no-print-directory --assume-old=build/python/complete wheel
		cp build/dist/*.whl out
		;;
	static)
		"${MAKE:-make}" --no-print-directory static
		cp build/static/*.tar.gz out
		;;
	deb)
		"${MAKE:-make}" --no-print-directory deb
		cp build/deb/*.deb out
		;;
	*)
		echo "reproducible-test: unknown part '$1'; choose from archive, crate, wheel, static, deb" >&2
		exit 2
		;;
	esac
}

for directory in "${directories[@]}"; do
	git -c advice.detachedHead=false clone --quiet . "$directory"
	mkdir -p "$directory/out" "$directory/build"
	for part in "${parts[@]}"; do
		echo "build $part in $directory"
		(cd "$directory" && build "$part")
	done
done
different=0
cd "${directories[0]}/out"
for file in *; do
	if cmp "$file" "${directories[1]}/out/$file"; then
		echo "equal: $file"
	else
		different=1
	fi
done
exit "$different"
