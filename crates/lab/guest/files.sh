# Workload: a shell for each CPU makes, reads and removes files in one directory.
mkdir -p /tmp/files
for cpu in $(seq "$(nproc)"); do
	(
		count=0
		end=$(($(date +%s) + ${SECONDS_EACH:-5}))
		while [ "$(date +%s)" -lt "$end" ]; do
			for i in 1 2 3 4 5 6 7 8; do
				echo "$i" >"/tmp/files/$cpu.$i"
				read -r line <"/tmp/files/$cpu.$i"
				[ "$line" = "$i" ] || exit 1
			done
			rm "/tmp/files/$cpu".*
			count=$((count + 8))
		done
		echo "$count" >"/tmp/count.$cpu"
	) &
done
wait
echo "files $(cat /tmp/count.* | awk '{ sum += $1 } END { print sum }')"
set -- /tmp/count.*
[ $# = "$(nproc)" ]
