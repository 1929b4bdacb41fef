# Workload: make compiles a program of 40 files repeatedly, with a job for each CPU.
mkdir /tmp/compile && cd /tmp/compile || exit 1
{
	echo '#include <stdio.h>'
	for i in $(seq 40); do
		echo "int f$i(int a) { return a + $i; }" >"f$i.c"
		echo "int f$i(int);"
	done
	echo 'int main(void) { int sum = 0;'
	for i in $(seq 40); do
		echo "sum = f$i(sum);"
	done
	printf '%s\n' 'return !printf("%d\n", sum); }'
} >main.c
cat >Makefile <<'M'
program: $(patsubst %.c,%.o,$(wildcard *.c))
	$(CC) -o $@ $^
M
uptime() {
	cut -d ' ' -f 1 /proc/uptime
}
count=0
begin=$(uptime)
end=$(($(date +%s) + ${SECONDS_EACH:-5}))
while [ "$(date +%s)" -lt "$end" ]; do
	make -s -j "$(nproc)" CC=tcc program || exit 1
	[ "$(./program)" = 820 ] || exit 1
	rm program ./*.o
	count=$((count + 1))
done
echo "compiles $count"
awk "BEGIN { printf \"rate %.2f\\n\", 60 * $count / ($(uptime) - $begin) }"
