// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A program under the library keeps the limits that it keeps by itself. */
#include "test.h"

#include <limits.h>
#include <semaphore.h>

#define THREADS 64

/* Returns the size of the process' address space in bytes. */
static size_t address_space(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	CHECK(statm && fscanf(statm, "%lu", &pages) == 1);
	fclose(statm);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static sem_t started, end;

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		;
}

static void *idle(void *arg)
{
	sem_post(&started);
	wait_for(&end);
	return arg;
}

/* Threads that allocate nothing take little more of the address space than their stacks. */
static void check_threads(void)
{
	const size_t stack = PTHREAD_STACK_MIN + 65536, more = 65536;
	const size_t before = address_space();
	pthread_t threads[THREADS];
	pthread_attr_t attr;

	CHECK(pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setstacksize(&attr, stack) == 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_create(&threads[i], &attr, idle, NULL) == 0);
		wait_for(&started);
	}
	CHECK(address_space() <= before + THREADS * (stack + more));
	for (int i = 0; i < THREADS; i++)
		sem_post(&end);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
}

/* What a user may lock in memory by default, since Linux 5.16 */
#define LOCKABLE ((size_t)8 << 20)

int main(void)
{
	begin();
	/* So mlockall() works for a small program. The profiler's record is larger than that. */
	CHECK(address_space() < LOCKABLE || getenv("LOCKWORKS_PROFILE"));
	sem_init(&started, 0, 0);
	sem_init(&end, 0, 0);
	check_threads();
	return 0;
}
