# Workload: a shell for each CPU forks short-lived programs.
for cpu in $(seq "$(nproc)"); do
	(
		count=0
		end=$(($(date +%s) + ${SECONDS_EACH:-5}))
		while [ "$(date +%s)" -lt "$end" ]; do
			count=$((count + 1))
		done
		echo "$count" >"/tmp/fork.$cpu"
	) &
done
wait
echo "forks $(cat /tmp/fork.* | awk '{ sum += $1 } END { print sum }')"
[ "$(grep -l '^[1-9]' /tmp/fork.* | wc -l)" = "$(nproc)" ]
