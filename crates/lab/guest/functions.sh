# Functions that the guest's scripts share.

switch=/sys/kernel/debug/numa_spinlock
events=/sys/kernel/debug/lock_event_counts

# Reports to the host, over the second serial line.
tell() {
	echo "@lockworks $*" >"$CHANNEL"
}

# Prints the slow path of spinlocks. "hq" means that spinlocks that opted in to HQ use it, and that
# all others have the stock slow path.
slow_path() {
	path=$(cat "$switch/slowpath")
	case $path,$(cat "$switch/hq") in
	cna,Y) echo "cna and hq" ;;
	*,Y) echo hq ;;
	*) echo "$path" ;;
	esac
}

# Changes the slow path of spinlocks.
choose_slow_path() {
	case $1 in
	hq) path=stock hq=Y ;;
	*) path=$1 hq=N ;;
	esac
	echo "$path" >"$switch/slowpath"
	echo "$hq" >"$switch/hq"
	[ "$(slow_path)" = "$1" ]
}

# Reports every 5 seconds that the guest is alive. It does so for $1 seconds, the time that a task
# is expected to take. The host takes a task that needs longer for hung.
tell_alive() {
	until=$(($(date +%s) + ${1%.*}))
	while [ "$(date +%s)" -lt "$until" ]; do
		sleep 5
		tell alive
	done &
}

# Reports the kernel's lock events.
tell_counters() {
	[ -d "$events" ] || return 0
	grep '' "$events"/* | sed "s|^$events/|@lockworks counter |; s/:/ /" >"$CHANNEL"
}

reset_counters() {
	[ ! -e "$events/.reset_counts" ] || echo 1 >"$events/.reset_counts"
}

# Mounts the disk that has Debian's programs.
mount_disk() {
	mount -t ext4 /dev/vda /mnt && mount -t tmpfs tmpfs /mnt/tmp || return 1
	for directory in proc sys sys/kernel/debug dev; do
		mount --bind "/$directory" "/mnt/$directory" || return 1
	done
}

# Runs the workload $1 on that disk, in place of the shell.
exec_on_disk() {
	case $1 in
	open | create | lock2) script=loops ;;
	*) script=$1 ;;
	esac
	cp "/lockworks/$script.sh" /mnt/tmp/workload.sh
	export LOOP="$1"
	exec chroot /mnt /bin/sh /tmp/workload.sh
}

# Runs a round of the kernel's locktorture with locks of type $1. Reports its begin and end, and the
# module's messages.
torture() {
	dmesg -c >/dev/null
	begin=$(cut -d ' ' -f 1 /proc/uptime)
	# shellcheck disable=SC2086 # several parameters
	insmod /lockworks/modules/locktorture.ko torture_type="$1" $PARAMETERS || {
		tell refused "the kernel cannot load locktorture.ko: $(dmesg | tail -n 1)"
		return 1
	}
	sleep "$LENGTH"
	rmmod locktorture
	tell lasted "$begin $(cut -d ' ' -f 1 /proc/uptime)"
	dmesg | grep -e 'Writes:' -e '-torture:' | sed 's/^/@lockworks log /' >"$CHANNEL"
}
