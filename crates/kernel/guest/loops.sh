# Workload: a program with a thread for each CPU. Each thread opens and closes a file of its own in
# one directory; with LOOP=create it makes and removes the file.
cat >/tmp/loops.c <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int create;
static double end;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *work(void *number)
{
	int flags = create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR;
	long done = 0;
	char name[32];

	snprintf(name, sizeof(name), "/tmp/loops/%d", (int)(long)number);
	do {
		for (int i = 0; i < 20; i++, done++) {
			int file = open(name, flags, 0600);

			if (file < 0 || close(file) || (create && unlink(name)))
				exit(1);
		}
	} while (now() < end);
	return (void *)done;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[2]);
	pthread_t *ids = calloc(threads, sizeof(*ids));
	double begin = now();
	long all = 0;
	void *done;

	create = !strcmp(argv[1], "create");
	end = begin + atoi(argv[3]);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)(long)i))
			return 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(ids[i], &done);
		all += (long)done;
	}
	printf("rate %.1f\n", all / (now() - begin));
	return 0;
}
C
LOOP=${LOOP:-open}
tcc -o /tmp/loops.program /tmp/loops.c -lpthread || exit 1
mkdir -p /tmp/loops
rm -f /tmp/loops/*
if [ "$LOOP" = open ]; then
	for i in $(seq "$(nproc)"); do
		: >"/tmp/loops/$((i - 1))"
	done
fi
/tmp/loops.program "$LOOP" "$(nproc)" "${SECONDS_EACH:-5}"
