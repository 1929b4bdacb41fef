# Runs the workload named by WORKLOAD on the disk with Debian's programs.
. /lockworks/functions.sh
mount_disk && exec_on_disk "$WORKLOAD"
