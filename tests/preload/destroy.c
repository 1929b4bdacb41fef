// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A mutex is destroyed in the child of a fork, while threads wait for it in the parent. They are
 * not in the child, so nobody holds the mutex there once it is unlocked.
 */
#include "test.h"

#define THREADS 6

static pthread_mutex_t awaited = PTHREAD_MUTEX_INITIALIZER;
static unsigned int arriving;

static void *wait_once(void *arg)
{
	__atomic_fetch_add(&arriving, 1, __ATOMIC_RELAXED);
	CHECK(pthread_mutex_lock(&awaited) == 0);
	CHECK(pthread_mutex_unlock(&awaited) == 0);
	return arg;
}

static void destroy_awaited(void *arg)
{
	(void)arg;
	GIVES(EBUSY, pthread_mutex_destroy(&awaited));
	GIVES(0, pthread_mutex_unlock(&awaited));
	GIVES(0, pthread_mutex_destroy(&awaited));
}

int main(void)
{
	pthread_t threads[THREADS];

	begin();
	CHECK(pthread_mutex_lock(&awaited) == 0);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(wait_once, NULL);
	while (__atomic_load_n(&arriving, __ATOMIC_RELAXED) < THREADS)
		usleep(200);
	usleep(10000);
	CHECK(in_child(destroy_awaited, NULL) == 0);
	CHECK(pthread_mutex_unlock(&awaited) == 0);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	return 0;
}
