# Runs the script named by WORKLOAD on the disk with Debian's programs.
mount -t ext4 /dev/vda /mnt && mount -t tmpfs tmpfs /mnt/tmp || exit 1
for directory in proc sys dev; do
	mount --bind "/$directory" "/mnt/$directory" || exit 1
done
cp "/lockworks/$WORKLOAD.sh" /mnt/tmp/workload.sh
exec chroot /mnt /bin/sh /tmp/workload.sh
