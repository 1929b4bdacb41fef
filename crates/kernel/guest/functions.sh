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
	grep '' "$events"/* | sed "s|^$events/|@lockworks counter |; s/:/ /" >"$CHANNEL"
}

reset_counters() {
	[ ! -e "$events/.reset_counts" ] || echo 1 >"$events/.reset_counts"
}

# The disk with Debian's programs.
mount_disk() {
	mount -t ext4 /dev/vda /mnt && mount -t tmpfs tmpfs /mnt/tmp || return 1
	for directory in proc sys dev; do
		mount --bind "/$directory" "/mnt/$directory" || return 1
	done
}

# Becomes a workload on that disk.
exec_on_disk() {
	cp "/lockworks/$1.sh" /mnt/tmp/workload.sh
	exec chroot /mnt /bin/sh /tmp/workload.sh
}

# A round of the kernel's own locktorture; how long it lasted and what it said are told.
torture() {
	dmesg -c >/dev/null
	begin=$(cut -d ' ' -f 1 /proc/uptime)
	# shellcheck disable=SC2086 # several parameters
	insmod /lockworks/modules/locktorture.ko torture_type="$1" $PARAMETERS || {
		tell refused "the kernel does not take locktorture.ko: $(dmesg | tail -n 1)"
		return 1
	}
	sleep "$LENGTH"
	rmmod locktorture
	tell lasted "$begin $(cut -d ' ' -f 1 /proc/uptime)"
	dmesg | grep -e 'Writes:' -e '-torture:' | sed 's/^/@lockworks log /' >"$CHANNEL"
}
