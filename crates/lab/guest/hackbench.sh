# Workload: groups of processes that send messages to each other over sockets, repeatedly. A run has
# a group for every four CPUs. In a group each of 20 processes sends to each of 20 others.
groups=$((($(nproc) + 3) / 4))
loops=10
runs=0
end=$(($(date +%s) + ${SECONDS_EACH:-5}))
: >/tmp/hackbench
while [ "$(date +%s)" -lt "$end" ]; do
	hackbench --groups "$groups" --fds 20 --loops "$loops" >>/tmp/hackbench || exit 1
	runs=$((runs + 1))
done
echo "runs $runs of $groups groups"
# hackbench prints the time that a run took, in seconds.
awk -v messages=$((groups * 20 * 20 * loops)) '
	/^Time: / { count++; time += $2 }
	END { printf "rate %.1f\n", count * messages / time }' /tmp/hackbench
