#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# conformance.sh LTP: run the tests of POSIX threads in a source tree of the Linux Test Project
# (testcases/open_posix_testsuite) as they are and with the preload library, and say which end in
# another way. Those that tests/preload/conformance.txt lists may, and only those.
set -uo pipefail
suite=$(realpath -m "$1/testcases/open_posix_testsuite")
cd "$(dirname "$0")/.." || exit
[[ -d $suite/conformance ]] || {
	echo "make test-conformance: $1 is no source tree of LTP; get one from" \
		"https://github.com/linux-test-project/ltp and give LTP=DIR" >&2
	exit 2
}
build=$PWD/build/conformance preload=$PWD/build/liblockworks-preload.so
mkdir -p "$build"

# LTP's exit codes; 124: no end within the limit. An end by a signal is above 128.
run_test() {
	local source=$1 name=${1#"$suite/conformance/interfaces/"} program glibc ours
	program=$build/${name//\//.} program=${program%.c}
	cd "$(dirname "$source")" || return
	gcc -w -std=gnu11 -D_GNU_SOURCE -O1 -pthread -I"$suite/include" "$source" "$suite"/lib/*.c \
		-lm -lrt -o "$program" 2>"$program.log" || {
		echo "${name%.c} not compiled"
		return
	}
	timeout -k 1 "$LIMIT" "$program" >"$program.log" 2>&1
	glibc=$?
	LD_PRELOAD=$preload timeout -k 1 "$LIMIT" "$program" >>"$program.log" 2>&1
	ours=$?
	echo "${name%.c} $glibc $ours"
}
export -f run_test
export build preload suite LIMIT=${LIMIT:-60}

echo "test conformance: some minutes" >&2
find "$suite"/conformance/interfaces/pthread_{mutex,cond,rwlock,spin}* -name '[0-9]*-[0-9]*.c' | sort |
	xargs -P "$(nproc)" -I{} bash -c 'run_test "$1"' _ {} | tee "$build/results" |
	awk '{ if (NR % 50 == 0) print NR " tests" }' >&2
awk '$2 == $3 { same++ }
	$2 == "not" { unfit++ }
	END { print NR " tests, " same + 0 " end as with glibc, " unfit + 0 " do not compile" }' "$build/results"
diff --label 'tests/preload/conformance.txt' --label 'test, end with glibc, end with Lockworks' -u \
	<(sed 's/ *#.*//; /^$/d' tests/preload/conformance.txt | sort) \
	<(awk '$2 != "not" && $2 != $3' "$build/results" | sort)
