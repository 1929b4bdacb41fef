#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Checks each lock of a pull request, as action.yml has it: writes its results to a directory in SARIF, the run that
# breaks a promise as a page, and what the checks print to the summary of the job.
#
# usage: scripts/check-locks.sh DIRECTORY FILE.c...
#
# LOCKWORKS is the command, OPTIONS are more options of `lockworks check`. GITHUB_STEP_SUMMARY and GITHUB_OUTPUT are
# files that a runner gives. Exit status: 0, and the highest one of the checks as `status` in GITHUB_OUTPUT, so that
# the results can be uploaded first.
set -euo pipefail

usage() {
	echo "usage: $0 DIRECTORY FILE.c..." >&2
	exit 2
}
[ $# -ge 2 ] || usage
directory=$1
shift
mkdir -p "$directory"
read -r -a options <<<"${OPTIONS:-}"
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
worst=0
number=0
for file in "$@"; do
	number=$((number + 1))
	name=$directory/$number-$(basename "$file" .c)
	status=0
	"${LOCKWORKS:-lockworks}" check --source "$file" ${options[@]+"${options[@]}"} \
		--sarif "$name.sarif" --trace "$name.html" >"$name.txt" 2>&1 || status=$?
	cat "$name.txt"
	# Text between fences.
	{
		printf '### %s: status %s\n\n~~~text\n' "$file" "$status"
		cat "$name.txt"
		printf '~~~\n'
	} >>"$summary"
	[ "$status" -le "$worst" ] || worst=$status
done
echo "status=$worst" >>"${GITHUB_OUTPUT:-/dev/stdout}"
