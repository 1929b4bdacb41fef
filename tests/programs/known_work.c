// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads with known work, to judge replays by: each computes for HELD ns with a mutex, and for
 * APART ns without it. Prints turns a second.
 *
 *   cc -O2 -pthread -Wl,--build-id tests/programs/known_work.c -lm -o known_work
 *   ./known_work THREADS HELD APART SECONDS [constant|exponential|humps [LINES]]
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST  256
#define LINES 16

static pthread_mutex_t mutex __attribute__((aligned(64))) = PTHREAD_MUTEX_INITIALIZER;
static struct {
	volatile long n;
	char unused[120];
} line[LINES] __attribute__((aligned(128)));
static volatile int over;
static double rounds_in_ns, held_ns, apart_ns;
static const char *times = "constant";
static int lines = 1;
static long turns[MOST];

static void __attribute__((noinline, aligned(64))) compute(long rounds)
{
	for (long i = 0; i < rounds; i++)
		__asm__ volatile("");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Nine times of ten half of the mean, else 5.5 times the mean: two humps. */
static double draw(uint64_t *random, double mean)
{
	double uniform;

	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	uniform = (double)((*random >> 11) + 1) / 9007199254740993.0;
	if (times[0] == 'e')
		return -log(uniform) * mean;
	if (times[0] == 'h')
		return uniform < 0.9 ? mean * 0.5 : mean * 5.5;
	return mean;
}

static void *run(void *arg)
{
	const long number = (long)arg;
	uint64_t random = (uint64_t)number * 88172645463325252u + 1;
	long own = 0;

	while (!over) {
		pthread_mutex_lock(&mutex);
		for (int i = 0; i < lines; i++)
			line[i].n++;
		compute((long)(draw(&random, held_ns) * rounds_in_ns));
		pthread_mutex_unlock(&mutex);
		compute((long)(draw(&random, apart_ns) * rounds_in_ns));
		own++;
	}
	turns[number] = own;
	return NULL;
}

int main(int argc, char *argv[])
{
	const int threads = argc > 4 ? atoi(argv[1]) : 0;
	const double seconds = argc > 4 ? atof(argv[4]) : 0;
	const struct timespec pause = {(time_t)seconds,
				       (long)((seconds - (double)(time_t)seconds) * 1e9)};
	pthread_t thread[MOST];
	uint64_t begun;
	long all = 0;

	if (threads < 1 || threads > MOST) {
		fprintf(stderr, "usage: known_work THREADS HELD APART SECONDS [TIMES [LINES]]\n");
		return 2;
	}
	held_ns = atof(argv[2]);
	apart_ns = atof(argv[3]);
	if (argc > 5)
		times = argv[5];
	if (argc > 6)
		lines = atoi(argv[6]) % (LINES + 1);
	for (int i = 0; i < 20; i++) {
		double rate;

		begun = now_ns();
		compute(2000000);
		rate = 2000000.0 / (double)(now_ns() - begun);
		if (rate > rounds_in_ns)
			rounds_in_ns = rate;
	}
	begun = now_ns();
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	nanosleep(&pause, NULL);
	over = 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		all += turns[i];
	}
	printf("%.0f turns a second\n", (double)all / ((double)(now_ns() - begun) / 1e9));
	return 0;
}
