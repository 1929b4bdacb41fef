#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# quick.sh [LOCK]: test a change within minutes. With an argument, test the lock LOCK. Without one,
# test all files that differ from upstream; if none do, the files of the last commit.
# `make test` tests every promise.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUST_BACKTRACE=0
only=${1-}
lockworks=${CARGO_TARGET_DIR:-target}/debug/lockworks
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

lists=(locks/registry/locks_list.h locks/historic/historic_locks_list.h)

# The locks, lockrefs and the condition variable that the object of a lock file holds.
described() {
	nm "$1" | sed -n 's/^[0-9a-f]* [DR] lw_\(.*\)_type$/\1/p' | sed 's/^lockref_/lockref-/'
	[[ $1 != */cond.o ]] || echo cond
}

# Those that a changed file is compiled into, by the dependency files of the compiler.
locks_of() {
	local file object
	for object in build/historic/locks/*.o build/historic/locks/historic/*.o; do
		for file in "$@"; do
			if grep -qF " $file" "${object%.o}.d"; then
				described "$object"
				break
			fi
		done
	done
}

all_locks() {
	sed -n 's/^LW_LOCK(\(.*\))$/\1/p' "${lists[@]}"
}

all_checked() {
	all_locks
	sed -n 's/^LW_LOCKREF(\([^,]*\),.*/lockref-\1/p' locks/registry/lockref_list.h
	echo cond
}

# The tools to run on each lock.
declare -A tools=()

# want TOOLS: run the tools on the locks that standard input lists.
want() {
	local lock
	while read -r lock; do
		if [[ $lock != busted ]]; then
			tools[$lock]+=" $1 "
		fi
	done
}

# Runs each tool on a lock. A failure does not keep the tools after it from running.
try_lock() {
	local lock=$1 seconds=$2 wanted=${tools[$1]}
	# Only the checker knows the others.
	if [[ $lock != lockref-* && $lock != cond ]]; then
		if [[ $wanted == *' conformance '* ]]; then
			step "$lock: conformance tests" build/historic/tests/conformance "$lock" || true
		fi
		if [[ $wanted == *' torture '* ]]; then
			step "$lock: torture, 1 to 4 threads" "$lockworks" torture --lock "$lock" \
				--threads 1,2,4 --seconds 0.3 --rounds 2 || true
		fi
		if [[ $wanted == *' sim '* ]]; then
			step "$lock: sim, 4 sockets, up to all 96 CPUs" "$lockworks" sim --machine kunpeng-920 \
				--lock "$lock" --threads 2,48,96 --ms 2 --seeds 1 || true
		fi
	fi
	if [[ $wanted == *' check '* ]]; then
		# A violation takes some more time, to find the shortest run.
		limit=$((2 * seconds + 60)) step "$lock: check, small configurations" "$lockworks" check \
			--lock "$lock" --quick --seconds "$seconds" || true
	fi
}

build_tools() {
	limit=900 step 'build: the C library and its conformance tests' make -j2 HISTORIC=1 build/historic/tests/conformance &&
		limit=900 step 'build: the lockworks command' cargo build
}

mapfile -t files < <(if [[ $only ]]; then find locks -name "$only.[ch]"; else changed; fi)
if [[ $only ]] && ! all_locks | grep -x "$only" >/dev/null; then
	echo "quick: '$only' is not a lock; ${lists[0]} lists them" >&2
	exit 2
fi

started=$SECONDS
c=() crates=() of_locks=() untested=()
test_c='' test_preload=''
for file in "${files[@]}"; do
	[[ $file != *.[ch] || ! -e $file ]] || c+=("$file")
	# Only the build says into which locks these are compiled.
	case $file in
	locks/cond.? | locks/lockref.? | locks/registry/*) of_locks+=("$file") && test_c=1 ;;
	locks/*) of_locks+=("$file") ;;
	worlds/user/*) want 'conformance torture' < <(all_locks) && test_c=1 ;;
	worlds/check/*) want check < <(all_checked) ;;
	worlds/sim/*) want sim < <(all_locks) ;;
	clients/* | lib/* | tests/user/*) test_c=1 ;;
	interpose/* | tests/preload/*) test_preload=1 ;;
	machines/*) crates+=(machine) ;;
	experiments/*) crates+=(experiments) ;;
	crates/*/*)
		crate=${file#crates/}
		crates+=("${crate%%/*}")
		;;
	*) untested+=("$file") ;;
	esac
done
mapfile -t crates < <(printf '%s\n' "${crates[@]}" | sort -u | sed '/^$/d')

if [[ $only ]]; then
	((!${#c[@]})) || step 'format: C' clang-format --dry-run -Werror "${c[@]}" || true
else
	step 'format: everything' make --no-print-directory test-format || true
fi
if ((${#crates[@]})); then
	limit=900 step 'clippy: all crates' cargo clippy --quiet --workspace --all-targets -- \
		-D warnings || true
fi
for crate in "${crates[@]}"; do
	package=lockworks-$crate
	[[ $crate != lockworks ]] || package=lockworks
	# The integration tests of these crates take minutes, so only their unit tests run.
	case $crate in
	check | cli | maintain | sim | sweep) tests=(--lib) ;;
	*) tests=() ;;
	esac
	[[ -e crates/$crate/src/lib.rs ]] || tests=("${tests[@]/--lib/--bins}")
	limit=900 step "tests: $package ${tests[*]}" cargo test --quiet -p "$package" \
		"${tests[@]}" || true
done
if ((${#of_locks[@]} + ${#tools[@]})) || [[ $only ]]; then
	if build_tools; then
		if [[ $only ]]; then
			want 'conformance torture check sim' <<<"$only"
		else
			want 'conformance torture check sim' < <(locks_of "${of_locks[@]}")
		fi
		mapfile -t locks < <(printf '%s\n' "${!tools[@]}" | sort | sed '/^$/d')
		for lock in "${locks[@]}"; do
			# All checks together take about 40 seconds. Most mistakes show early.
			seconds=$((40 / ${#locks[@]}))
			try_lock "$lock" $((seconds > 2 ? seconds : 2))
		done
	fi
fi
if [[ $test_c ]]; then
	limit=300 step 'test-c: the C library from inside' make -j2 test-c || true
fi
if [[ $test_preload ]]; then
	limit=300 step 'test-preload: programs under the interposed libraries' make -j2 test-preload || true
fi
if [[ $only ]] || ((${#c[@]})); then
	limit=900 step 'registration: what programs need of public locks' cargo test --quiet \
		-p lockworks-cli --test cli registration || true
fi

if ((${#untested[@]})); then
	echo 'quick: nothing but the format was tested of these files:'
	printf '  %s\n' "${untested[@]}"
fi
if ((${#failures[@]})); then
	printf 'quick: %d s, %d of these FAILED:\n' $((SECONDS - started)) ${#failures[@]}
	printf '  %s\n' "${failures[@]}"
	exit 1
fi
printf 'quick: %d s, nothing found. make test tests every promise.\n' $((SECONDS - started))
