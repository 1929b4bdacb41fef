// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A queue of 64 items with two conditions. Producers and consumers compute for PRODUCE and CONSUME
 * rounds of a loop for each item. Prints items a second.
 *
 *   cc -O2 -pthread -Wl,--build-id tests/programs/queue.c -o queue
 *   ./queue PRODUCERS CONSUMERS PRODUCE CONSUME SECONDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROOM 64
#define MOST 256

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_items = PTHREAD_COND_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER;
static int items;
static long all;
static bool over;
static int produce_rounds, consume_rounds;

static void __attribute__((noinline, aligned(64))) compute(long rounds)
{
	for (long i = 0; i < rounds; i++)
		__asm__ volatile("");
}

/* Waits until there are items, or room for one more, and changes their number. */
static bool pass(pthread_cond_t *wait, int none, int change, pthread_cond_t *signal)
{
	bool goes_on;

	pthread_mutex_lock(&mutex);
	while (items == none && !over)
		pthread_cond_wait(wait, &mutex);
	goes_on = !over;
	items += change;
	all += change < 0;
	pthread_cond_signal(signal);
	pthread_mutex_unlock(&mutex);
	return goes_on;
}

static void *produce(void *arg)
{
	do
		compute(produce_rounds);
	while (pass(&has_room, ROOM, 1, &has_items));
	return arg;
}

static void *consume(void *arg)
{
	while (pass(&has_items, 0, -1, &has_room))
		compute(consume_rounds);
	return arg;
}

int main(int argc, char *argv[])
{
	const int producers = argc > 5 ? atoi(argv[1]) : 0,
		  consumers = argc > 5 ? atoi(argv[2]) : 0;
	const double seconds = argc > 5 ? atof(argv[5]) : 0;
	const struct timespec pause = {(time_t)seconds,
				       (long)((seconds - (double)(time_t)seconds) * 1e9)};
	pthread_t thread[MOST];
	long done;

	if (producers < 1 || consumers < 1 || producers + consumers > MOST) {
		fprintf(stderr, "usage: queue PRODUCERS CONSUMERS PRODUCE CONSUME SECONDS\n");
		return 2;
	}
	produce_rounds = atoi(argv[3]);
	consume_rounds = atoi(argv[4]);
	for (int i = 0; i < producers + consumers; i++)
		pthread_create(&thread[i], NULL, i < producers ? produce : consume, NULL);
	nanosleep(&pause, NULL);
	pthread_mutex_lock(&mutex);
	over = true;
	done = all;
	pthread_cond_broadcast(&has_items);
	pthread_cond_broadcast(&has_room);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < producers + consumers; i++)
		pthread_join(thread[i], NULL);
	printf("%.0f items a second\n", (double)done / seconds);
	return 0;
}
