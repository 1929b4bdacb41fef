#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# quick.sh [LOCK]: test a change within minutes. With an argument, test the lock LOCK. Without one,
# test all files that differ from upstream; if none do, the files of the last commit.
# `make test` tests everything.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUST_BACKTRACE=0
only=${1-}
lockworks=${CARGO_TARGET_DIR:-target}/quick/lockworks
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failures=()

# The part of the log that says what is wrong: from the first failure, to the token that repeats it or
# at most 40 lines. The last 20 lines if no line names a failure. Lines are whole, to be copied.
show_failure() {
	awk '
		{ line[NR] = $0 }
		!first && /VIOLATION:|deadlock of|breaks a promise|^error|: error|panicked|FAILED/ { first = NR }
		first && !token && /replay:|--replay / { token = NR }
		END {
			from = first ? first : (NR > 20 ? NR - 19 : 1)
			to = token ? token : (NR < from + 39 ? NR : from + 39)
			for (i = from; i <= to; i++) print "    " line[i]
			if (to < NR) printf "    ... %d more lines\n", NR - to
		}' "$log"
}

# step NAME COMMAND...: run the command and print how long it took; show its output if it fails.
# Exit status 3 is no failure: a check ended at its time limit and found nothing until then.
step() {
	local name=$1 status=0 verdict start=$EPOCHREALTIME
	shift
	timeout --kill-after=5 "${limit:-30}" "$@" >"$log" 2>&1 </dev/null || status=$?
	case $status in
	0) verdict=ok ;;
	3) verdict='ok, not all' ;;
	124 | 137) verdict="NO END in ${limit:-30} s" ;;
	*) verdict=FAILED ;;
	esac
	awk -v verdict="$verdict" -v name="$name" -v from="$start" -v to="$EPOCHREALTIME" \
		'BEGIN { printf "%-12s %6.1f s  %s\n", verdict, to - from, name }'
	if [[ $verdict != ok* ]]; then
		failures+=("$name")
		if [[ $verdict == NO* ]]; then
			printf '    It did not end: a thread waits for a value that no thread writes, or this machine is slow.\n'
		fi
		show_failure
		printf '    run it again: %s\n' "$*"
		return 1
	fi
}

# The files that a change consists of.
changed() {
	local base
	base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse HEAD)
	if [[ $base == $(git rev-parse HEAD) && -z $(git status --porcelain) ]]; then
		base=$(git rev-parse HEAD~1)
	fi
	{
		git diff --name-only --diff-filter=d "$base"
		git ls-files --others --exclude-standard
	} | sort -u
}

# The locks that the object of a lock file describes.
described() {
	nm "$1" | sed -n 's/^[0-9a-f]* [DR] lw_\(.*\)_type$/\1/p'
}

# The locks that a changed file is compiled into, by the dependency files of the compiler.
locks_of() {
	local file object
	for object in build/locks/*.o; do
		for file in "$@"; do
			if grep -qF " $file" "${object%.o}.d"; then
				described "$object"
				break
			fi
		done
	done | sort -u
}

# Runs each tool on a lock. A failure does not keep the tools after it from running.
try_lock() {
	local lock=$1 seconds=$2
	if [[ $lock == busted ]]; then
		return
	fi
	step "$lock: conformance tests" build/tests/conformance "$lock" || true
	step "$lock: torture, 1 to 4 threads" "$lockworks" torture --lock "$lock" --threads 1,2,4 \
		--seconds 0.3 --rounds 2 || true
	step "$lock: check, small configurations" "$lockworks" check --lock "$lock" --quick \
		--seconds "$seconds" || true
	step "$lock: sim, 4 sockets, up to all 96 CPUs" "$lockworks" sim --machine kunpeng-920 --lock "$lock" \
		--threads 2,48,96 --ms 2 || true
}

build_tools() {
	limit=900 step 'build: the C library and its conformance tests' make -j2 build/tests/conformance &&
		limit=900 step 'build: the lockworks command' cargo build --profile quick -p lockworks-cli
}

mapfile -t files < <(if [[ $only ]]; then printf '%s\n' locks/"$only".[ch]; else changed; fi)
if [[ $only ]] && ! grep -qx "LW_LOCK($only)" locks/registry/locks_list.h; then
	echo "quick: '$only' is not a lock; locks/registry/locks_list.h lists them" >&2
	exit 2
fi

started=$SECONDS
c=() locks=() crates=()
for file in "${files[@]}"; do
	if [[ $file == *.[ch] && -e $file ]]; then
		c+=("$file")
	fi
	if [[ $file == crates/*/* ]]; then
		crate=${file#crates/}
		crates+=("${crate%%/*}")
	fi
done
mapfile -t crates < <(printf '%s\n' "${crates[@]}" | sort -u | sed '/^$/d')

if [[ $only ]]; then
	((!${#c[@]})) || step 'format: C' clang-format --dry-run -Werror "${c[@]}" || true
else
	step 'format: everything' scripts/format.sh || true
fi
if ((${#crates[@]})); then
	limit=900 step 'clippy: all crates' cargo clippy --quiet --profile quick --workspace --all-targets -- \
		-D warnings || true
fi
for crate in "${crates[@]}"; do
	package=lockworks-$crate
	[[ $crate != lockworks ]] || package=lockworks
	# The integration tests of these crates take minutes, so only their unit tests run.
	case $crate in
	check | cli | kernel | sim) tests=(--lib) ;;
	*) tests=() ;;
	esac
	[[ -e crates/$crate/src/lib.rs ]] || tests=("${tests[@]/--lib/--bins}")
	limit=900 step "tests: $package ${tests[*]}" cargo test --quiet --profile quick -p "$package" \
		"${tests[@]}" || true
done
if [[ $only ]] || ((${#c[@]})); then
	if build_tools; then
		if [[ $only ]]; then
			locks=("$only")
		else
			mapfile -t locks < <(locks_of "${c[@]}")
		fi
		for lock in "${locks[@]}"; do
			# All checks together take about 40 seconds, each at least one. Most mistakes show early.
			seconds=$((40 / ${#locks[@]} / 4))
			try_lock "$lock" $((seconds > 1 ? seconds : 1))
		done
	fi
	limit=900 step 'registration: what programs need of public locks' cargo test --quiet \
		--profile quick -p lockworks-cli --test registration || true
fi

if ((${#failures[@]})); then
	printf 'quick: %d s, %d of these FAILED:\n' $((SECONDS - started)) ${#failures[@]}
	printf '  %s\n' "${failures[@]}"
	exit 1
fi
printf 'quick: %d s, nothing found. make test tests everything.\n' $((SECONDS - started))
