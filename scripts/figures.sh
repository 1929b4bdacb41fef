#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# figures.sh DIR: write the figures that a redesign must not change into a new directory, one JSON file
# each, with sorted keys. `diff -r OLD NEW` then compares two sets.
#
#   sim/MACHINE/WORKLOAD.json  every lock at three numbers of threads, 1 ms of virtual time
#   reproduce/TABLE.json       every published table, simulated
#   check/LOCK.json            the states of every lock's small configurations, checked
#
# LOCKWORKS is the command to ask, target/release/lockworks unless set.
set -euo pipefail

out=${1:?name a new directory}
lockworks=${LOCKWORKS:-target/release/lockworks}
mkdir "$out" "$out"/{sim,reproduce,check}

# A failure in a command substitution ends the script, one in <(...) does not.
machines=$("$lockworks" machines --json | jq -er '.[] | "\(.name) \(.cpus)"')
while read -r machine cpus; do
	mkdir "$out/sim/$machine"
	for workload in experiments/workloads/*.toml; do
		workload=$(basename "$workload" .toml)
		"$lockworks" sim --machine "$machine" --workload "$workload" --ms 1 --seeds 1 --json \
			--threads "2,$((cpus / 4)),$cpus" | jq -S . >"$out/sim/$machine/$workload.json"
	done
done <<<"$machines"

tables=$("$lockworks" reproduce --json | jq -er '.[].table')
while read -r table; do
	"$lockworks" reproduce "$table" --json </dev/null | jq -S . >"$out/reproduce/$table.json"
done <<<"$tables"

# All but time, memory, and sites by their lines.
checks=$("$lockworks" check --quick --json | jq 'map(del(.seconds, .memory_bytes, .uncovered))')
for lock in $(jq -r 'map(.lock) | unique[]' <<<"$checks"); do
	jq -S --arg lock "$lock" 'map(select(.lock == $lock))' <<<"$checks" >"$out/check/$lock.json"
done
