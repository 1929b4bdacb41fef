// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Statistics that many threads write under one mutex: each worker records how long each piece of
 * its work took. Then the program prints what the locks have counted.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <lockworks/lockworks.h>

#define WORKERS 4
#define PIECES	20000

static struct latencies {
	struct lw_mutex lock;
	uint64_t count, sum, longest;
} latencies = {.lock = LW_MUTEX_INIT};

static void record(uint64_t ns)
{
	lw_mutex_lock(&latencies.lock);
	latencies.count++;
	latencies.sum += ns;
	if (latencies.longest < ns)
		latencies.longest = ns;
	lw_mutex_unlock(&latencies.lock);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *work(void *arg)
{
	volatile unsigned int *number = arg;

	for (unsigned int i = 0; i < PIECES; i++) {
		uint64_t begin = now();

		for (unsigned int j = 0; j < i % 100; j++)
			(*number)++;
		record(now() - begin);
	}
	return NULL;
}

int main(void)
{
	unsigned int numbers[WORKERS] = {0};
	uint64_t events[LW_EVENT_COUNT];
	pthread_t workers[WORKERS];

	for (unsigned int i = 0; i < WORKERS; i++) {
		if (pthread_create(&workers[i], NULL, work, &numbers[i])) {
			fprintf(stderr, "latencies: cannot start a thread\n");
			return 1;
		}
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);

	printf("%" PRIu64 " pieces of work, %" PRIu64 " ns on average, %" PRIu64 " at most\n",
	       latencies.count, latencies.sum / latencies.count, latencies.longest);
	lw_statistics(events);
	for (unsigned int i = 0; i < LW_EVENT_COUNT; i++) {
		if (events[i])
			printf("%" PRIu64 " %s: %s\n", events[i], lw_event_name(i),
			       lw_event_meaning(i));
	}
	return latencies.count != (uint64_t)WORKERS * PIECES;
}
