#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# stages.sh [--resume] TARGET...: make each target, one after the other, also after one has failed. As many
# recipes of a target run at the same time as there are CPUs. At the end, print how long each target took.
#
# With --resume, a target may have the minutes that it takes on two CPUs behind its name, as in test-c:2. The
# sum is printed first. A target that has passed with the same files is not made again.
set -uo pipefail

passed=
# Targets that prepare the machine are made each time.
is_passed() {
	[[ $1 != setup* && -e $passed/${1%:*} ]]
}

if [[ ${1-} = --resume ]]; then
	shift
	files=$(
		git rev-parse HEAD && git diff HEAD &&
			git ls-files --others --exclude-standard -z | xargs -0 -r sha1sum &&
			echo "${CC-} ${CFLAGS-} ${HOST-}"
	) || exit
	passed=build/passed/$(sha1sum <<<"$files" | cut -c1-16)
	mkdir -p "$passed"
	left=() minutes=0
	for stage in "$@"; do
		! is_passed "$stage" || continue
		left+=("$stage")
		[[ $stage != *:* ]] || minutes=$((minutes + ${stage#*:}))
	done
	printf '%d of %d stages are left, which take about %d minutes on two CPUs\n' ${#left[@]} $# $minutes
	set -- "${left[@]}"
fi

times=() failed=0
report() {
	printf '\n%-20s minutes\n' stage
	printf '%s\n' "${times[@]}"
	printf '%-20s %d:%02d\n' total $((SECONDS / 60)) $((SECONDS % 60))
}
trap report EXIT

for stage in "$@"; do
	stage=${stage%:*}
	begin=$SECONDS verdict=
	if "${MAKE:-make}" --no-print-directory --jobs="$(nproc)" --output-sync=line "$stage"; then
		[[ -z $passed ]] || touch "$passed/$stage"
	else
		verdict=' FAILED' failed=1
	fi
	took=$((SECONDS - begin))
	times+=("$(printf '%-20s %d:%02d%s' "$stage" $((took / 60)) $((took % 60)) "$verdict")")
done
exit $failed
