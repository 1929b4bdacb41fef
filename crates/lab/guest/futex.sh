# Workload: a program with a thread for each CPU. All threads acquire one mutex.
cat >/tmp/futex.c <<'C'
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int word;
static long all;
static time_t end;

static void *work(void *own)
{
	while (time(NULL) < end) {
		pthread_mutex_lock(&mutex);
		all++;
		++*(long *)own;
		pthread_mutex_unlock(&mutex);
		/*
		 * The word does not have the expected value, so the thread does not wait. The
		 * kernel acquires the lock of the hash bucket to find out.
		 */
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = atoi(argv[1]), started = 0;
	pthread_t *ids = calloc(threads, sizeof(*ids));
	long *own = calloc(threads, sizeof(*own)), sum = 0;

	end = time(NULL) + atoi(argv[2]);
	while (started < threads && !pthread_create(&ids[started], NULL, work, &own[started]))
		started++;
	for (int i = 0; i < started; i++) {
		pthread_join(ids[i], NULL);
		sum += own[i];
	}
	printf("mutex taken %ld\n", all);
	return started < threads || !all || sum != all;
}
C
tcc -o /tmp/futex /tmp/futex.c -lpthread || exit 1
/tmp/futex "$(nproc)" "${SECONDS_EACH:-5}"
