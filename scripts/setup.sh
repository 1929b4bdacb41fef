#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Test whether the tools are installed; with "compiles", "kernel", "programs", "cross", "deb", "rpm", "recipes",
# "roots" or "container", also those that only these tests need. As root, install the missing ones from Debian, and
# say so first.
# "crate VERSION" installs this version of Rust by rustup, beside that of the machine.
set -euo pipefail

packages=()
want() { # package, and a command that succeeds when it is there
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || packages+=("$package")
}

want gcc command -v "${CC:-cc}"
want g++ command -v "${CXX:-c++}"
want make command -v make
want cmake command -v cmake
want meson command -v meson
want git command -v git
want pkg-config command -v pkg-config
want valgrind test -e /usr/include/valgrind/helgrind.h
want clang-format command -v clang-format
want shellcheck command -v shellcheck
want shfmt command -v shfmt
want codespell command -v codespell
want jq command -v jq
want python3-venv /usr/bin/python3 -c 'import ensurepip'
want curl command -v curl
want doxygen command -v doxygen
want python3-markdown-it /usr/bin/python3 -c 'import markdown_it'
want libck-dev test -e /usr/include/ck_spinlock.h
want libnsync-dev test -e /usr/include/nsync.h
want libabsl-dev test -e /usr/include/absl/synchronization/mutex.h
if [[ ${1-} = @(compiles|kernel) ]]; then
	want clang-19 command -v clang-19
	want lld-19 command -v ld.lld-19
	want llvm-19 command -v llvm-ar-19
	want flex command -v flex
	want bison command -v bison
	want bc command -v bc
	want kmod test -x /sbin/depmod
	want xz-utils command -v xz
	want libelf-dev test -e /usr/include/gelf.h
fi
if [[ ${1-} = kernel ]]; then
	want patch command -v patch
	want perl command -v perl
	want sparse command -v sparse
	want coccinelle command -v spatch
	want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
	want qemu-system-arm command -v qemu-system-aarch64
	want mmdebstrap command -v mmdebstrap
fi
if [[ ${1-} = cross ]]; then
	want qemu-user-static command -v qemu-riscv64-static
	for host in aarch64:arm64 riscv64:riscv64; do
		want "gcc-${host%:*}-linux-gnu" command -v "${host%:*}-linux-gnu-gcc"
		want "g++-${host%:*}-linux-gnu" command -v "${host%:*}-linux-gnu-g++"
		want "libc6-dev-${host#*:}-cross" test -e "/usr/${host%:*}-linux-gnu/include/pthread.h"
	done
	want musl-tools command -v musl-gcc
	want clang command -v clang
fi
if [[ ${1-} = deb ]]; then
	want debhelper command -v dh
	want lintian command -v lintian
	want mmdebstrap command -v mmdebstrap
fi
if [[ ${1-} = rpm ]]; then
	want rpm command -v rpmbuild
	want mmdebstrap command -v mmdebstrap
fi
if [[ ${1-} = recipes ]]; then
	want bazel-bootstrap command -v bazel
	want bazel-rules-java test -e /usr/share/bazel/rules/java/BUILD
	want bazel-rules-proto test -e /usr/share/bazel/rules/proto/WORKSPACE
fi
if [[ ${1-} = roots ]]; then
	want mmdebstrap command -v mmdebstrap
fi
if [[ ${1-} = container ]]; then
	want buildah command -v buildah
	want mmdebstrap command -v mmdebstrap
fi
if [[ ${1-} = programs ]]; then
	want memcached command -v memcached
	want libmemcached-tools command -v memcaslap
	want libleveldb-dev test -e /usr/include/leveldb/db.h
	want rocksdb-tools command -v db_bench
	want redis-server command -v redis-server
	want redis-tools command -v redis-benchmark
	want mariadb-server-core command -v mariadbd
	want mariadb-client command -v mariadb-slap
	want unbound command -v unbound
	want dnsperf command -v dnsperf
	want stress-ng command -v stress-ng
	want chromium test -x /usr/bin/chromium
	want python3 test -x /usr/bin/python3
	want '^libpython3[.][0-9]+-testsuite$' /usr/bin/python3 -c 'import test.test_threading'
fi

if ((${#packages[@]})); then
	if ((EUID)) || ! command -v apt-get >/dev/null; then
		echo "setup: missing, to be installed first: ${packages[*]}" >&2
		exit 1
	fi
	echo "setup: installing Debian packages: ${packages[*]}"
	# Tests start servers of their own: none must run because it was installed.
	if [[ ! -e /usr/sbin/policy-rc.d ]]; then
		echo "setup: meanwhile /usr/sbin/policy-rc.d keeps services from starting"
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		install -m 755 /dev/stdin /usr/sbin/policy-rc.d <<<$'#!/bin/sh\nexit 101'
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
	for package in "${packages[@]}"; do
		[[ $package != @(memcached|redis-server|unbound) ]] || systemctl -q disable "$package" || true
	done
fi

if ! command -v cargo >/dev/null; then
	echo "setup: missing, to be installed first: Rust 1.95 or later, see https://rustup.rs" >&2
	exit 1
fi

if [[ ${1-} = crate ]]; then
	# With a target that has no operating system, and so no std.
	target=x86_64-unknown-none
	install=(rustup toolchain install "$2" --profile minimal --target "$target" --no-self-update)
	if ! rustup target list --toolchain "$2" --installed 2>/dev/null | grep "^$target$" >/dev/null; then
		echo "setup: installing Rust $2 beside that of this machine"
		"${install[@]}" || {
			echo "setup: missing, to be installed first: Rust $2, by ${install[*]}" >&2
			exit 1
		}
	fi
fi
