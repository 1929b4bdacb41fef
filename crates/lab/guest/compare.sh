# Runs the workloads named by WORKLOADS, one after another, and reports the rate of each.
. /lockworks/functions.sh
. /lockworks/plan
export SECONDS_EACH="$LENGTH"

[ -z "$ON_DISK" ] || mount_disk || {
	tell refused "the kernel cannot mount the disk"
	exit 1
}
insmod /lockworks/modules/torture.ko || {
	tell refused "the kernel cannot load torture.ko"
	exit 1
}

reset_counters
for workload in $WORKLOADS; do
	tell workload "$workload"
	case $workload in
	locktorture)
		torture spin_lock || exit 1
		tell measured
		;;
	*)
		said=$(exec_on_disk "$workload" 2>&1) || {
			tell failed "$workload: $(echo "$said" | tail -n 1)"
			continue
		}
		tell rate "${said##*rate }"
		;;
	esac
done
tell_counters
