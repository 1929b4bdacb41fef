# Runs rounds of the kernel's locktorture, one for each word of RUNS: ROUND:LOCK:TYPE.
. /lockworks/functions.sh
. /lockworks/plan

insmod /lockworks/modules/torture.ko || {
	tell refused "the kernel cannot load torture.ko"
	exit 1
}

for run in $RUNS; do
	IFS=: read -r round lock type <<-END
		$run
	END
	tell round "$round" "$lock"
	[ -z "$SWITCHING" ] || choose_slow_path "$lock" || {
		tell refused "the kernel did not change its slow path to $lock"
		exit 1
	}
	reset_counters
	tell_alive "$LENGTH"
	torture "$type" || exit 1
	tell_counters
	tell measured
done
