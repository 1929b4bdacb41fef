#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Tests the settings of Lockworks' spinlocks, kernel.hqlock_*, pv_* and
# unfair_*. Each setting must accept its lowest and its highest value and
# refuse others. In the end it has its old value again.

ksft_pass=0
ksft_fail=1
ksft_skip=4

directory=/proc/sys/kernel

# Each setting with its highest value, and the next one, which is refused. The
# lowest value is 0.
settings="
hqlock_fairness_threshold 9223372036854775807 9223372036854775808
hqlock_general_handoffs_turn_numa 9223372036854775807 9223372036854775808
hqlock_remote_handoffs_turn_numa 9223372036854775807 9223372036854775808
hqlock_local_handoffs_to_increase_remotes 9223372036854775807 9223372036854775808
hqlock_remote_handoffs_keep_numa 9223372036854775807 9223372036854775808
hqlock_probability_of_force_stay_numa 10000 10001
pv_kick_at_unlock 1 2
pv_kick_ahead 8 9
pv_wait_early 1 2
pv_pending 1 2
pv_steal 1 2
pv_starvation_limit 4294967295 4294967296
pv_latencies 1 2
pv_arrival_spin 4294967295 4294967296
pv_spin 4294967295 4294967296
unfair_park 0 1
unfair_spin 4294967295 4294967296
unfair_arrival_spin 4294967295 4294967296
unfair_starvation_limit 4294967295 4294967296
"

takes() { # FILE VALUE
	echo "$2" 2>/dev/null >"$1" && [ "$(cat "$1")" = "$2" ]
}

refuses() { # FILE VALUE
	before=$(cat "$1")
	! echo "$2" 2>/dev/null >"$1" && [ "$(cat "$1")" = "$before" ]
}

has_range() { # FILE HIGHEST BEYOND
	for value in 0 "$2"; do
		if ! takes "$1" "$value"; then
			echo "# $1 does not take $value"
			return 1
		fi
	done
	for value in "$3" -1 many; do
		if ! refuses "$1" "$value"; then
			echo "# $1 does not refuse $value"
			return 1
		fi
	done
}

echo "TAP version 13"

if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP only root can write settings"
	exit $ksft_skip
fi

# Settings that this kernel has, whether or not they are in the table.
names=
for file in "$directory"/hqlock_* "$directory"/pv_* "$directory"/unfair_*; do
	[ -e "$file" ] && names="$names ${file##*/}"
done
if [ -z "$names" ]; then
	echo "1..0 # SKIP this kernel has none of these settings"
	exit $ksft_skip
fi

# shellcheck disable=SC2086 # one argument for each name
set -- $names
echo "1..$#"
number=0
failed=0
for name; do
	number=$((number + 1))
	line=$(echo "$settings" | grep "^$name ")
	file=$directory/$name
	if [ -z "$line" ]; then
		failed=$((failed + 1))
		echo "not ok $number $name is not known to this test"
		continue
	fi
	old=$(cat "$file")
	# shellcheck disable=SC2086 # the words of the line
	if has_range "$file" ${line#* } && takes "$file" "$old"; then
		echo "ok $number $name"
	else
		failed=$((failed + 1))
		echo "$old" >"$file"
		echo "not ok $number $name"
	fi
done
echo "# Totals: pass:$((number - failed)) fail:$failed xfail:0 xpass:0 skip:0 error:0"
[ $failed = 0 ] || exit $ksft_fail
exit $ksft_pass
