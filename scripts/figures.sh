#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Write the figures that a redesign must not change, and compare two sets of them.
set -euo pipefail

usage() {
	cat <<'END'
usage: scripts/figures.sh write DIR
       scripts/figures.sh compare [--renamed FILE] OLD NEW

write    writes into DIR, one JSON file a figure:
           sim/MACHINE/WORKLOAD.json  every lock at three numbers of threads, 1 ms of virtual time
           reproduce/TABLE.json       every published table, simulated
           check/LOCK.json            the states of every lock's small configurations, checked
         LOCKWORKS is the command to ask, target/release/lockworks unless set.
compare  prints each value that differs between two such directories, and exits with 1 if any does.
         Each line of FILE has the old and the new name of a key that was renamed.
END
}

refuse() {
	echo "figures.sh: $1" >&2
	exit 2
}

write() { # directory
	local out=$1 lockworks=${LOCKWORKS:-target/release/lockworks}
	local machines tables checks machine cpus workload table lock
	command -v "$lockworks" >/dev/null || refuse "no command $lockworks; run make, or set LOCKWORKS"
	[[ ! -e $out ]] || refuse "$out exists; name a new directory"
	# A failure in a command substitution ends the script, one in <(...) does not.
	machines=$("$lockworks" machines --json | jq -er '.[] | "\(.name) \(.cpus)"')
	tables=$("$lockworks" reproduce --json | jq -er '.[].table')
	mkdir -p "$out/reproduce" "$out/check"
	while read -r machine cpus; do
		mkdir -p "$out/sim/$machine"
		for workload in experiments/workloads/*.toml; do
			workload=$(basename "$workload" .toml)
			"$lockworks" sim --machine "$machine" --workload "$workload" --ms 1 --seeds 1 --json \
				--threads "2,$((cpus / 4)),$cpus" -o "$out/sim/$machine/$workload.json"
		done
	done <<<"$machines"
	while read -r table; do
		"$lockworks" reproduce "$table" --json -o "$out/reproduce/$table.json" </dev/null
	done <<<"$tables"
	checks=$("$lockworks" check --quick --json | jq 'map(del(.seconds, .memory_bytes, .uncovered))')
	for lock in $(jq -r 'map(.lock) | unique[]' <<<"$checks"); do
		jq --arg lock "$lock" 'map(select(.lock == $lock))' <<<"$checks" >"$out/check/$lock.json"
	done
}

# The values of a JSON file, a line each, with keys renamed.
values() { # file names
	jq -r --argjson names "$2" '
		paths(type | IN("object", "array") | not) as $path
		| ($path | map(if type == "string" then $names[.] // . else tostring end) | join(".")) as $key
		| "\($key) = \(getpath($path) | tojson)"' "$1" | LC_ALL=C sort
}

compare() { # old new renamed
	local old=$1 new=$2 names='{}' files file before after lines differ=0
	[[ -d $old && -d $new ]] || refuse "$old and $new are not both directories; write them first"
	[[ -z $3 || -r $3 ]] || refuse "cannot read $3; name a file of old and new names"
	if [[ -n $3 ]]; then
		! grep -vqE '^[^ ]+ [^ ]+$' "$3" || refuse "$3 has a line that is not an old and a new name"
		names=$(jq -Rn '[inputs / " " | {(.[0]): .[1]}] | add // {}' "$3")
	fi
	files=$(find "$old" "$new" -name '*.json' -printf '%P\n' | sort -u)
	[[ -n $files ]] || refuse "$old and $new hold no figures; write them first"
	while read -r file; do
		if [[ ! -e $old/$file ]]; then
			echo "$file: only in $new"
		elif [[ ! -e $new/$file ]]; then
			echo "$file: only in $old"
		else
			before=$(values "$old/$file" "$names")
			after=$(values "$new/$file" '{}')
			lines=$(diff <(echo "$before") <(echo "$after") || true)
			[[ -n $lines ]] || continue
			sed -n "s|^[<>]|$file: &|p" <<<"$lines"
		fi
		differ=1
	done <<<"$files"
	return "$differ"
}

case ${1-} in
write)
	[[ $# -eq 2 ]] || refuse 'write takes one directory; see scripts/figures.sh --help'
	write "$2"
	;;
compare)
	shift
	renamed=
	if [[ ${1-} == --renamed ]]; then
		renamed=${2-}
		[[ -n $renamed ]] || refuse '--renamed takes a file'
		shift 2
	fi
	[[ $# -eq 2 ]] || refuse 'compare takes two directories; see scripts/figures.sh --help'
	compare "$1" "$2" "$renamed"
	;;
--help) usage ;;
*) refuse "unknown command '${1-}'; write or compare, see scripts/figures.sh --help" ;;
esac
