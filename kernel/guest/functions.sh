# Sourced by the guest's scripts.

switch=/sys/kernel/debug/numa_spinlock
events=/sys/kernel/debug/lock_event_counts

# Says something to the host, beside the console.
tell() {
	echo "@lockworks $*" >"$CHANNEL"
}

# Which slow paths spinlocks take. hq: those that opted in to it; others the stock one.
slow_path() {
	path=$(cat "$switch/slowpath")
	case $path,$(cat "$switch/hq") in
	cna,Y) echo "cna and hq" ;;
	*,Y) echo hq ;;
	*) echo "$path" ;;
	esac
}

# Has spinlocks take another.
choose_slow_path() {
	case $1 in
	hq) path=stock hq=Y ;;
	*) path=$1 hq=N ;;
	esac
	echo "$path" >"$switch/slowpath"
	echo "$hq" >"$switch/hq"
	[ "$(slow_path)" = "$1" ]
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
