# Workload: a program with a thread for each CPU, in one of three loops. Their names and operations
# are in the program. open and lock2 are the loops of will-it-scale's open1 and lock2 with threads.
cat >/tmp/loops.c <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double end;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Opens and closes a file. */
static int open_and_close(const char *name, int flags)
{
	int file = open(name, flags, 0600);

	return file < 0 ? file : close(file);
}

/* Locks or unlocks the first byte of a file, as POSIX has it: the process has the lock. */
static int lock(int file, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	return fcntl(file, F_SETLKW, &lock);
}

/* Each operation returns how many were done, or a negative number. */

/* A thread opens and closes a file of its own. */
static int do_open(const char *own, int shared)
{
	return open_and_close(own, O_RDWR) ? -1 : 1;
}

/* A thread makes and removes a file of its own. */
static int do_create(const char *own, int shared)
{
	return open_and_close(own, O_RDWR | O_CREAT | O_EXCL) || unlink(own) ? -1 : 1;
}

/* A thread locks and unlocks a byte of the file that all threads lock: two operations. */
static int do_lock2(const char *own, int shared)
{
	return lock(shared, F_WRLCK) || lock(shared, F_UNLCK) ? -1 : 2;
}

static const struct {
	const char *name;
	int (*operation)(const char *own, int shared);
} loops[] = { { "open", do_open }, { "create", do_create }, { "lock2", do_lock2 } };

static int (*operation)(const char *own, int shared);

static void *work(void *number)
{
	int shared = open("/tmp/loops/shared", O_RDWR);
	long all = 0;
	char own[32];

	snprintf(own, sizeof(own), "/tmp/loops/%d", (int)(long)number);
	do {
		for (int i = 0; i < 20; i++) {
			int done = operation(own, shared);

			if (done < 0)
				exit(1);
			all += done;
		}
	} while (now() < end);
	return (void *)all;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[2]);
	pthread_t *ids = calloc(threads, sizeof(*ids));
	double begin = now();
	long all = 0;
	void *done;

	for (int i = 0; i < 3; i++)
		if (!strcmp(argv[1], loops[i].name))
			operation = loops[i].operation;
	if (!operation)
		return 1;
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
tcc -o /tmp/loops.program /tmp/loops.c -lpthread || exit 1
mkdir -p /tmp/loops
rm -f /tmp/loops/*
: >/tmp/loops/shared
if [ "$LOOP" = open ]; then
	for i in $(seq "$(nproc)"); do
		: >"/tmp/loops/$((i - 1))"
	done
fi
/tmp/loops.program "$LOOP" "$(nproc)" "${SECONDS_EACH:-5}"
