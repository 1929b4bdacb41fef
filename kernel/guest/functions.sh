# Sourced by the guest's scripts.

switch=/sys/kernel/debug/numa_spinlock/slowpath
events=/sys/kernel/debug/lock_event_counts

# Says something to the host, beside the console.
tell() {
	echo "@lockworks $*" >"$CHANNEL"
}

# Tells every few seconds that the guest is alive, for as long as something is to take, not longer:
# what then does not end hangs.
tell_alive() {
	until=$(($(date +%s) + ${1%.*}))
	while [ "$(date +%s)" -lt "$until" ]; do
		sleep 5
		tell alive
	done &
}

# Tells how often the kernel's locks did what they count.
tell_counters() {
	[ -d "$events" ] || return 0
	for counter in "$events"/*; do
		echo "@lockworks counter ${counter##*/} $(cat "$counter")"
	done >"$CHANNEL"
}

reset_counters() {
	[ ! -e "$events/.reset_counts" ] || echo 1 >"$events/.reset_counts"
}
