#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# kernel-tests.sh COMMAND...: run the tests that COMMAND lists, one after the other. A test that has
# passed with the same files is not run again, so an interrupted run goes on where it was. The tests of
# a part have its name in theirs: ONLY=quick or ONLY=arm64 chooses some of them.
set -uo pipefail

cd "$(dirname "$0")/.." || exit
passed=build/kernel-tests/$({
	git rev-parse HEAD
	git diff HEAD
} | sha1sum | cut -c1-16)
mkdir -p "$passed"
readarray -t tests < <("$@" --list "${ONLY-}" | sed -n 's/: test$//p')
((${#tests[@]})) || {
	echo "kernel-tests: no test is named like ${ONLY-}" >&2
	exit 1
}

failed=()
for test in "${tests[@]}"; do
	stamp=$passed/${test//:/_}
	if [[ -e $stamp ]]; then
		echo "$test: has passed"
	elif "$@" --exact "$test"; then
		touch "$stamp"
	else
		failed+=("$test")
	fi
done
((${#failed[@]} == 0)) || {
	printf 'kernel-tests: failed: %s\n' "${failed[@]}" >&2
	exit 1
}
