#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# stages.sh TARGET...: make each target, one after the other, also after one has failed. As many recipes of
# a target run at the same time as there are CPUs. At the end, print how long each target took.
set -uo pipefail

times=() failed=0
report() {
	printf '\n%-20s minutes\n' stage
	printf '%s\n' "${times[@]}"
	printf '%-20s %d:%02d\n' total $((SECONDS / 60)) $((SECONDS % 60))
}
trap report EXIT

for stage in "$@"; do
	begin=$SECONDS verdict=
	"${MAKE:-make}" --no-print-directory --jobs="$(nproc)" --output-sync=line "$stage" || verdict=' FAILED' failed=1
	took=$((SECONDS - begin))
	times+=("$(printf '%-20s %d:%02d%s' "$stage" $((took / 60)) $((took % 60)) "$verdict")")
done
exit $failed
