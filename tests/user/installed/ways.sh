#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ways.sh WAY...: build the examples by each way in which build tools find the library, and run them. The
# library is that of $STAGE.
set -euo pipefail
work=build/ways
cmake=${CMAKE:-cmake}
mkdir -p "$work"

# use DIRECTORY KIND: the examples in the directory run, with the shared or the static library.
use() {
	"$1/latencies" >/dev/null
	"$1/queue" >/dev/null
	if [[ $2 = shared ]]; then
		ldd "$1/latencies" | grep -q 'liblockworks\.so\.0 => /' || fail "$1/latencies: has no shared library"
	else
		! ldd "$1/latencies" | grep -q liblockworks || fail "$1/latencies: has a shared library"
	fi
}
fail() {
	echo "$*" >&2
	exit 1
}
# configure BUILD OPTION...: the examples, by CMake, with the library of $prefix.
configure() {
	"$cmake" -S examples -B "$1" -DCMAKE_PREFIX_PATH="$prefix" "${@:2}" >"$work/log" 2>&1 ||
		fail "$(cat "$work/log")"
	"$cmake" --build "$1" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
}

# A copy shows that the files name no place.
way_cmake() {
	local prefix=$PWD/$work/moved
	cp -r "$STAGE" "$prefix"
	configure "$work/cmake"
	use "$work/cmake" shared
	configure "$work/cmake-static" -DLOCKWORKS=lockworks::static
	use "$work/cmake-static" static
	mkdir "$work/newer"
	cp -r examples/c examples/cpp "$work/newer"
	sed 's/lockworks 0\.1/lockworks 0.2/' examples/CMakeLists.txt >"$work/newer/CMakeLists.txt"
	! "$cmake" -S "$work/newer" -B "$work/newer/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
		fail 'find_package(lockworks 0.2) has accepted another version'
	grep -q 'lockworksConfig.cmake, version: ' "$work/log" || fail "$(cat "$work/log")"
}

way_pkg-config() {
	export PKG_CONFIG_PATH=$STAGE/lib/pkgconfig
	[[ $(sed -n 's/^URL: //p' "$PKG_CONFIG_PATH/lockworks.pc") == $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml) ]] ||
		fail 'lockworks.pc: URL is not the repository of Cargo.toml'
	pkg-config --exact-version="$(scripts/version.sh)" lockworks
}

for way in "$@"; do
	echo "test the way $way"
	rm -rf "$work"
	mkdir -p "$work"
	(way_"$way")
done
