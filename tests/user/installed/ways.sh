#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ways.sh WAY...: build the examples by each way in which build tools find the library, and run them. The
# library is that of $STAGE, or of the archive of make dist-c.
set -euo pipefail
work=build/ways
cmake=${CMAKE:-cmake}
mkdir -p "$work"

# use DIRECTORY KIND: the examples in the directory run, with the shared or the static library.
use() {
	"$1/latencies" >/dev/null
	"$1/queue" >/dev/null
	if [[ $2 = shared ]]; then
		ldd "$1/latencies" | grep 'liblockworks\.so\.0 => /' >/dev/null || fail "$1/latencies: has no shared library"
	else
		! ldd "$1/latencies" | grep liblockworks >/dev/null || fail "$1/latencies: has a shared library"
	fi
}
fail() {
	echo "$*" >&2
	exit 1
}
quietly() {
	"$@" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
}
# configure BUILD OPTION...: the examples, by CMake, with the library of $prefix.
configure() {
	quietly "$cmake" -S examples -B "$1" -DCMAKE_PREFIX_PATH="$prefix" "${@:2}"
	quietly "$cmake" --build "$1"
}

# Moved after it was installed, as the files name no place; with libraries in a directory of the processor, found
# through a link, as on systems whose /lib is a link.
way_cmake() {
	local prefix=$PWD/$work/moved arch usr=$PWD/$work/usr
	arch=$(cc -print-multiarch)
	env -u MAKEFLAGS -u MAKELEVEL make -s install-lib DESTDIR= PREFIX="$usr" LIBDIR="$usr/lib${arch:+/$arch}"
	mkdir "$prefix"
	mv "$usr" "$prefix"
	ln -s usr/lib "$prefix/lib"
	configure "$work/cmake"
	use "$work/cmake" shared
	configure "$work/cmake-static" -DLOCKWORKS=lockworks::static
	use "$work/cmake-static" static
	mkdir "$work/newer"
	cp -r examples/c examples/cpp "$work/newer"
	sed 's/lockworks [0-9.]*/lockworks 99/' examples/CMakeLists.txt >"$work/newer/CMakeLists.txt"
	! "$cmake" -S "$work/newer" -B "$work/newer/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
		fail 'find_package(lockworks 99) has accepted another version'
	grep -q 'lockworksConfig.cmake, version: ' "$work/log" || fail "$(cat "$work/log")"
}

# The files that the package specification names are there. CMake reads it since 4.3.
way_cps() {
	local files file
	python3 -m json.tool "$STAGE/lib/cps/lockworks.cps" >/dev/null
	mapfile -t files < <(grep -o '@prefix@[^"]*' "$STAGE/lib/cps/lockworks.cps")
	((${#files[@]} == 5)) || fail "lockworks.cps: it names ${#files[@]} files, not 5"
	for file in "${files[@]}"; do
		[[ -e $STAGE/${file#@prefix@/} ]] || fail "lockworks.cps: there is no $file"
	done
}

way_pkg-config() {
	export PKG_CONFIG_PATH=$STAGE/lib/pkgconfig
	[[ $(sed -n 's/^URL: //p' "$PKG_CONFIG_PATH/lockworks.pc") == $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml) ]] ||
		fail 'lockworks.pc: URL is not the repository of Cargo.toml'
	pkg-config --exact-version="$(scripts/version.sh)" lockworks
}

# unpack DIRECTORY: the archive, beside the examples.
name=lockworks-c-$(scripts/version.sh)
unpack() {
	mkdir -p "$1"
	tar -C "$1" -xzf "build/dist-c/$name.tar.gz"
}
exports() {
	quietly tests/user/installed/exports.sh "$1" lib/lockworks.map "-I$2"
}

way_archive() {
	unpack "$work"
	cc -O2 -Wall -Wextra -Werror -c "$work/$name"/*.c -o "$work/lockworks.o"
	cc -O2 -I"$work/$name" "$work/$name"/*.c examples/c/latencies.c -pthread -o "$work/latencies"
	c++ -O2 -std=c++17 -I"$work/$name" "$work/lockworks.o" examples/cpp/queue.cpp -pthread -o "$work/queue"
	use "$work" static
	# Equal to the byte, wherever it is built.
	cp -r lib locks worlds scripts packaging examples LICENSE LICENSES Cargo.toml Makefile CHANGELOG.md "$work"
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$work" dist-c >/dev/null
	cmp build/dist-c/"$name".tar.gz "$work/build/dist-c/$name.tar.gz"
}

way_archive-cmake() {
	local prefix=$PWD/$work/prefix tree=$work/whole
	unpack "$work"
	quietly "$cmake" -S "$work/$name" -B "$work/build" -DCMAKE_INSTALL_PREFIX="$prefix"
	quietly "$cmake" --build "$work/build" --target install
	exports "$prefix/lib/liblockworks.so" "$prefix/include"
	configure "$work/examples"
	use "$work/examples" shared
	configure "$work/examples-static" -DLOCKWORKS=lockworks::static
	use "$work/examples-static" static
	PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs lockworks | grep "$prefix/lib" >/dev/null ||
		fail 'pkg-config does not find the library that CMake has installed'
	# As a part of another project.
	unpack "$tree"
	cp -r examples/c examples/cpp "$tree"
	sed "/^project/a set(BUILD_SHARED_LIBS OFF)\nadd_subdirectory($name)" examples/CMakeLists.txt >"$tree/CMakeLists.txt"
	quietly "$cmake" -S "$tree" -B "$tree/build"
	quietly "$cmake" --build "$tree/build"
	use "$tree/build" static
}

way_archive-meson() {
	local tree=$work/whole
	unpack "$tree/subprojects"
	cp -r examples/c examples/cpp examples/meson.build "$tree"
	mv "$tree/subprojects/$name" "$tree/subprojects/lockworks"
	quietly meson setup --wrap-mode=forcefallback "$tree/build" "$tree"
	quietly meson compile -C "$tree/build"
	use "$tree/build" shared
	exports "$tree/build/subprojects/lockworks/liblockworks.so" "$tree/subprojects/lockworks"
	# Installed, where Meson finds it by pkg-config.
	quietly meson setup --prefix="$PWD/$work/prefix" --libdir=lib "$work/build" "$tree/subprojects/lockworks"
	quietly meson install -C "$work/build"
	export PKG_CONFIG_PATH=$PWD/$work/prefix/lib/pkgconfig LD_LIBRARY_PATH=$PWD/$work/prefix/lib
	quietly meson setup --wrap-mode=nofallback "$work/examples" examples
	quietly meson compile -C "$work/examples"
	use "$work/examples" shared
}

# vcpkg itself is not needed: vcpkg.cmake stands in for it.
way_vcpkg() {
	local shared prefix
	for shared in ON OFF; do
		quietly "$cmake" -DPORT_FILE="$PWD/build/dist-c/vcpkg/portfile.cmake" -DWORK="$PWD/$work/$shared" \
			-DSHARED=$shared -P tests/user/installed/vcpkg.cmake
		prefix=$PWD/$work/$shared/packages
		[[ -e $prefix/share/lockworks/lockworksConfig.cmake && -e $prefix/share/lockworks/LICENSE ]]
		configure "$work/$shared/examples"
	done
	use "$work/ON/examples" shared
	use "$work/OFF/examples" static
	python3 -m json.tool build/dist-c/vcpkg/vcpkg.json >/dev/null
}

# Conan builds and runs the examples in conan/test_package.
way_conan() {
	local shared
	export CONAN_HOME=$PWD/$work/home
	cp -r build/dist-c/conan "$work"
	quietly build/conan/bin/conan profile detect
	for shared in True False; do
		quietly build/conan/bin/conan create "$work/conan" -o "lockworks/*:shared=$shared"
		grep -q 'sum of what came through' "$work/log" || fail "$(cat "$work/log")"
	done
}

# Debian's Bazel is of the time before modules and comes without a network, so what MODULE.bazel asks for is
# said here: rules_cc, for which stand the rules that are built in.
way_bazel() {
	unpack "$work"
	cp -r examples/c examples/cpp "$work"
	mkdir -p "$work/rules_cc/cc"
	touch "$work"/{rules_cc,"$name"}/WORKSPACE "$work/rules_cc/cc/BUILD"
	echo "$name" >"$work/.bazelignore"
	for rule in library binary import test toolchain toolchain_suite proto_library; do
		echo "cc_$rule = native.cc_$rule"
	done >"$work/rules_cc/cc/defs.bzl"
	printf '%s = native.%s\n' fdo_profile{,} objc_library{,} >>"$work/rules_cc/cc/defs.bzl"
	printf 'local_repository(name = "%s", path = "%s")\n' lockworks "$name" rules_cc rules_cc \
		rules_java /usr/share/bazel/rules/java rules_proto /usr/share/bazel/rules/proto >"$work/WORKSPACE"
	printf 'cc_binary(name = "%s", srcs = ["%s"], copts = ["%s"], deps = ["@lockworks"])\n' \
		latencies c/latencies.c -Wall queue cpp/queue.cpp -std=c++17 >"$work/BUILD"
	cd "$work"
	local work=. root=$PWD/bazel-root
	quietly bazel --batch --output_user_root="$root" build --spawn_strategy=local //:latencies //:queue
	use bazel-bin static
	chmod -R u+w "$root"
}

for way in "$@"; do
	echo "test the way $way"
	rm -rf "$work"
	mkdir -p "$work"
	(way_"$way")
done
