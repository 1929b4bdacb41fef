# Workload: a web server and its clients on all CPUs.
mkdir -p /run /var/log/nginx
echo "a page" >/var/www/html/index.html
cat >/tmp/nginx.conf <<'C'
user www-data;
worker_processes auto;
pid /run/nginx.pid;
events {}
http {
	access_log off;
	server {
		listen 127.0.0.1:80;
		root /var/www/html;
	}
}
C
nginx -c /tmp/nginx.conf || exit 1
wrk -t "$(nproc)" -c "$(($(nproc) * 4))" -d "${SECONDS_EACH:-5}s" http://127.0.0.1:80/ >/tmp/wrk
status=$?
nginx -s stop
cat /tmp/wrk
grep -q 'Requests/sec' /tmp/wrk || exit 1
! grep -q -e 'Non-2xx' -e 'Socket errors' -e 'Requests/sec: *0\.00' /tmp/wrk || exit 1
sed -n 's|Requests/sec: *|rate |p' /tmp/wrk
exit $status
