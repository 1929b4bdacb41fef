# Runs the workload named by WORKLOAD on the disk that has Debian's programs.
. /lockworks/functions.sh
mount_disk && exec_on_disk "$WORKLOAD"
