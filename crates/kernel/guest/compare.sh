# Workloads one after the other, as planned in WORKLOADS; what each comes to is told.
. /lockworks/functions.sh
. /lockworks/plan
export SECONDS_EACH=$LENGTH

[ -z "$ON_DISK" ] || mount_disk || {
	tell refused "the kernel does not take the disk"
	exit 1
}
insmod /lockworks/modules/torture.ko || {
	tell refused "the kernel does not take torture.ko"
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
		case $workload in
		open | create) script=loops ;;
		*) script=$workload ;;
		esac
		said=$(LOOP=$workload exec_on_disk "$script" 2>&1) || {
			tell failed "$workload: $(echo "$said" | tail -n 1)"
			continue
		}
		tell rate "${said##*rate }"
		;;
	esac
done
tell_counters
