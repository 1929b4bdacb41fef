// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Thread-specific values: the program has all keys for itself, and may lock mutexes in the last
 * destructor of a thread.
 */
#include "test.h"

#include <limits.h>

struct contended {
	pthread_mutex_t mutex;
	unsigned int arriving; /* threads that are about to lock it */
};

static struct contended first = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static struct contended last = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void contend(struct contended *on)
{
	__atomic_fetch_add(&on->arriving, 1, __ATOMIC_RELAXED);
	CHECK(pthread_mutex_lock(&on->mutex) == 0);
	CHECK(pthread_mutex_unlock(&on->mutex) == 0);
}

/* Lets `n` threads wait for the mutex, which the caller holds, and releases it. */
static void let_wait(struct contended *on, unsigned int n)
{
	while (__atomic_load_n(&on->arriving, __ATOMIC_RELAXED) < n)
		sched_yield();
	usleep(100);
	on->arriving = 0;
	CHECK(pthread_mutex_unlock(&on->mutex) == 0);
}

/* Each of these threads has waited for a mutex, so the library knows it. */

static pthread_key_t keys[PTHREAD_KEYS_MAX];

static void *look(void *arg)
{
	contend(&first);
	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		CHECK(!pthread_getspecific(keys[i]));
	return arg;
}

static void check_all_keys(void)
{
	pthread_t threads[4];

	CHECK(pthread_mutex_lock(&first.mutex) == 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(look, NULL);
	/* Key 0, before it is created and after */
	CHECK(!pthread_getspecific(0));
	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		CHECK(pthread_key_create(&keys[i], NULL) == 0);
	let_wait(&first, 4);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	for (int i = 0; i < PTHREAD_KEYS_MAX; i++) {
		CHECK(!pthread_getspecific(keys[i]));
		CHECK(pthread_key_delete(keys[i]) == 0);
	}
}

/*
 * Threads that wait for a mutex in their function and in the last destructor that glibc calls for
 * them. The library has queue nodes for sixteen thousand threads. Were those of ended threads not
 * used again, this would take some megabytes of memory, and end in waits without a node.
 */

#define BATCH	   20
#define WARM_UP	   50
#define BATCHES	   (repetitions(20000) / BATCH)
#define MOST_GROWN (1024 * 1024)

static pthread_key_t key;

static void contend_at_last(void *round)
{
	if (round < (void *)PTHREAD_DESTRUCTOR_ITERATIONS)
		CHECK(pthread_setspecific(key, (char *)round + 1) == 0);
	else
		contend(&last);
}

static void *contend_twice(void *arg)
{
	contend(&first);
	CHECK(pthread_setspecific(key, (void *)1) == 0);
	return arg;
}

/* Returns the memory that this process has for itself, in bytes. Pages of files do not count: the
 * profiler's record has those of its table that were used. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, pages, of_files;

	CHECK(file && fscanf(file, "%ld %ld %ld", &size, &pages, &of_files) == 3);
	CHECK(fclose(file) == 0);
	return (pages - of_files) * sysconf(_SC_PAGESIZE);
}

static void check_last_destructors(void)
{
	long before = 0;

	CHECK(pthread_key_create(&key, contend_at_last) == 0);
	for (unsigned int i = 0; i < WARM_UP + BATCHES; i++) {
		pthread_t threads[BATCH];

		if (i == WARM_UP)
			before = resident();
		CHECK(pthread_mutex_lock(&first.mutex) == 0);
		CHECK(pthread_mutex_lock(&last.mutex) == 0);
		for (int j = 0; j < BATCH; j++)
			threads[j] = start(contend_twice, NULL);
		let_wait(&first, BATCH);
		let_wait(&last, BATCH);
		for (int j = 0; j < BATCH; j++)
			join(threads[j]);
	}
	/* An emulator's memory grows too. */
	CHECK(*test_runner() || resident() - before < MOST_GROWN);
	CHECK(pthread_key_delete(key) == 0);
}

int main(void)
{
	begin();
	check_all_keys();
	check_last_destructors();
	return 0;
}
