# Rounds of the kernel's own locktorture, as planned in RUNS: words of ROUND:LOCK:TYPE.
. /lockworks/functions.sh
. /lockworks/plan

insmod /lockworks/modules/torture.ko || {
	tell refused "the kernel does not take torture.ko"
	exit 1
}

for run in $RUNS; do
	IFS=: read -r round lock type <<-END
		$run
	END
	tell round "$round" "$lock"
	[ -z "$SWITCHING" ] || choose_slow_path "$lock" || {
		tell refused "the kernel did not change to $lock"
		exit 1
	}
	reset_counters
	tell_alive "$LENGTH"
	torture "$type" || exit 1
	tell_counters
	tell measured
done
