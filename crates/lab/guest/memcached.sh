# Workload: a memcached server with a thread for each CPU, and clients that set as often as they get.
threads=$(nproc)
cat >/tmp/load <<'C'
key
16 16 1
value
100 100 1
cmd
0 0.5
1 0.5
C
memcached --user root --listen 127.0.0.1 --threads "$threads" --udp-port 0 &
server=$!
for _ in $(seq 50); do
	memcping --servers 127.0.0.1 >/dev/null 2>&1 && break
	sleep 0.2
done
memcaslap --servers 127.0.0.1:11211 --threads "$threads" --concurrency "$((threads * 4))" \
	--win_size 1k --verify 1 --cfg_cmd /tmp/load --time "${SECONDS_EACH:-5}s" >/tmp/memcaslap
status=$?
kill $server
grep -e '^cmd_' -e '^get_misses' -e '^verify_' -e '^Run time' /tmp/memcaslap
# A value that was set and has another content later, or is missing, is a failure.
grep -q '^verify_failed: 0$' /tmp/memcaslap || exit 1
sed -n 's|.*TPS: \([0-9]*\) .*|rate \1|p' /tmp/memcaslap
exit $status
