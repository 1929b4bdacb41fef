# Rounds of the kernel's own locktorture, as planned in RUNS: words of ROUND:LOCK:TYPE.
. /lockworks/functions.sh
. /lockworks/plan

modules=/lockworks/modules

insmod "$modules/torture.ko" || {
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
	dmesg -c >/dev/null
	reset_counters
	insmod "$modules/locktorture.ko" torture_type="$type" $PARAMETERS || {
		tell refused "the kernel does not take locktorture.ko: $(dmesg | tail -n 1)"
		exit 1
	}
	tell_alive "$LENGTH"
	sleep "$LENGTH"
	rmmod locktorture
	tell_counters
	dmesg | grep -e 'Writes:' -e '-torture:' | sed 's/^/@lockworks log /' >"$CHANNEL"
	tell measured
done
