#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# fuzz.sh SECONDS: test the properties of the parsers in Rust with random values, until the time is
# over or a test fails. A failure is kept in proptest-regressions/ of its crate and tested ever after.
set -euo pipefail
cd "$(dirname "$0")/.."

properties=("${CARGO:-cargo}" test --quiet --lib -p lockworks-machine -p lockworks-sim
	-p lockworks-litmus -p lockworks-check -p lockworks-lab -p lockworks-sweep)
"${properties[@]}" --no-run
end=$((SECONDS + $1))
while ((SECONDS < end)); do
	echo "test properties with PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:=$SRANDOM}"
	PROPTEST_CASES=${PROPTEST_CASES:-1000} PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED \
		"${properties[@]}" properties:: || {
		echo "make fuzz: a property does not hold; correct the parser and commit proptest-regressions/" >&2
		exit 1
	}
	unset PROPTEST_RNG_SEED
done
