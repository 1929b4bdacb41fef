// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Mutexes of every type: the result of each call, and mutual exclusion. */
#include "test.h"

#include <limits.h>

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static void check_plain(pthread_mutex_t *mutex)
{
	GIVES(0, pthread_mutex_lock(mutex));
	CHECK(elsewhere(pthread_mutex_trylock, mutex) == EBUSY);
	GIVES(EBUSY, pthread_mutex_trylock(mutex));
	GIVES(EBUSY, pthread_mutex_destroy(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	CHECK(is_free(mutex));
	GIVES(0, pthread_mutex_trylock(mutex));
	/* POSIX does not define it, but programs do it and glibc allows it. */
	CHECK(elsewhere(pthread_mutex_unlock, mutex) == 0);
	CHECK(is_free(mutex));
}

static void check_recursive(pthread_mutex_t *mutex)
{
	GIVES(EPERM, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_lock(mutex));
	GIVES(0, pthread_mutex_lock(mutex));
	GIVES(0, pthread_mutex_trylock(mutex));
	CHECK(elsewhere(pthread_mutex_trylock, mutex) == EBUSY);
	CHECK(elsewhere(pthread_mutex_unlock, mutex) == EPERM);
	GIVES(EBUSY, pthread_mutex_destroy(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	CHECK(!is_free(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(EPERM, pthread_mutex_unlock(mutex));
	CHECK(is_free(mutex));

	/* Held as often as the count allows, in both libraries. */
	GIVES(0, pthread_mutex_lock(mutex));
	mutex->__data.__count = UINT_MAX;
	GIVES(EAGAIN, pthread_mutex_lock(mutex));
	GIVES(EAGAIN, pthread_mutex_trylock(mutex));
	mutex->__data.__count = 1;
	GIVES(0, pthread_mutex_unlock(mutex));
	CHECK(is_free(mutex));
}

static void check_checking(pthread_mutex_t *mutex)
{
	struct timespec soon = from_now(CLOCK_REALTIME, 10000);

	GIVES(EPERM, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_lock(mutex));
	GIVES(EDEADLK, pthread_mutex_lock(mutex));
	GIVES(EBUSY, pthread_mutex_trylock(mutex));
	GIVES(EDEADLK, pthread_mutex_timedlock(mutex, &soon));
	CHECK(elsewhere(pthread_mutex_trylock, mutex) == EBUSY);
	CHECK(elsewhere(pthread_mutex_unlock, mutex) == EPERM);
	GIVES(EBUSY, pthread_mutex_destroy(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(EPERM, pthread_mutex_unlock(mutex));
	CHECK(is_free(mutex));
	GIVES(0, pthread_mutex_trylock(mutex));
	GIVES(EDEADLK, pthread_mutex_lock(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
}

static void check_no_protocol(pthread_mutex_t *mutex)
{
	int ceiling;

	GIVES(EINVAL, pthread_mutex_getprioceiling(mutex, &ceiling));
	GIVES(EINVAL, pthread_mutex_setprioceiling(mutex, 1, &ceiling));
	GIVES(EINVAL, pthread_mutex_consistent(mutex));
}

static const struct {
	int type;
	void (*check)(pthread_mutex_t *mutex);
	pthread_mutex_t *initialised;
} types[] = {
	{PTHREAD_MUTEX_NORMAL, check_plain, &normal},
	{PTHREAD_MUTEX_RECURSIVE, check_recursive, &recursive},
	{PTHREAD_MUTEX_ERRORCHECK, check_checking, &checking},
	{PTHREAD_MUTEX_ADAPTIVE_NP, check_plain, &adaptive},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static void check_errors(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	for (size_t i = 0; i < TYPES; i++) {
		types[i].check(types[i].initialised);
		check_no_protocol(types[i].initialised);
		/* Initialised twice, in memory that is not zero. */
		memset(&mutex, 0xa5, sizeof(mutex));
		for (int j = 0; j < 2; j++) {
			mutex = typed_mutex(types[i].type);
			types[i].check(&mutex);
			check_no_protocol(&mutex);
			GIVES(0, pthread_mutex_destroy(&mutex));
		}
	}
	memset(&mutex, 0xa5, sizeof(mutex));
	GIVES(0, pthread_mutex_init(&mutex, NULL));
	check_plain(&mutex);
	GIVES(0, pthread_mutex_destroy(&mutex));
	/* It has no type any more. */
	GIVES(EINVAL, pthread_mutex_lock(&mutex));

	CHECK(pthread_mutexattr_init(&attr) == 0);
	GIVES(0, pthread_mutex_init(&mutex, &attr));
	check_plain(&mutex);
	GIVES(0, pthread_mutex_destroy(&mutex));
}

/* Exclusion */

#define THREADS 16
#define ROUNDS	4000

struct counted {
	pthread_mutex_t *mutex;
	unsigned long count;
	pthread_barrier_t all;
};

static void *count(void *arg)
{
	struct counted *counted = arg;

	pthread_barrier_wait(&counted->all);
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 8 != 0 || pthread_mutex_trylock(counted->mutex) != 0)
			CHECK(pthread_mutex_lock(counted->mutex) == 0);
		counted->count++;
		if (i % 64 == 0)
			sched_yield();
		CHECK(pthread_mutex_unlock(counted->mutex) == 0);
	}
	return NULL;
}

static void check_exclusion(pthread_mutex_t *mutex)
{
	struct counted counted = {.mutex = mutex};
	pthread_t threads[THREADS];

	CHECK(pthread_barrier_init(&counted.all, NULL, THREADS) == 0);
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(count, &counted);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	CHECK(counted.count == THREADS * ROUNDS);
	CHECK(is_free(mutex));
}

/* The member in which debuggers look for the holder: its number, however it acquired the mutex. */
static void *check_owner(void *arg)
{
	pthread_mutex_t *mutex = arg;
	struct timespec soon = from_now(CLOCK_REALTIME, 10000);

	for (int i = 0; i < 3; i++) {
		CHECK(mutex->__data.__owner == 0);
		CHECK((i == 0	? pthread_mutex_lock(mutex)
		       : i == 1 ? pthread_mutex_trylock(mutex)
				: pthread_mutex_timedlock(mutex, &soon)) == 0);
		CHECK(mutex->__data.__owner == gettid());
		CHECK(pthread_mutex_unlock(mutex) == 0);
	}
	CHECK(mutex->__data.__owner == 0);
	return NULL;
}

static void check_owner_in_child(void *mutex)
{
	check_owner(mutex);
	join(start(check_owner, mutex));
}

int main(void)
{
	begin();
	check_errors();
	for (size_t i = 0; i < TYPES; i++) {
		join(start(check_owner, types[i].initialised));
		check_owner(types[i].initialised);
		CHECK(in_child(check_owner_in_child, types[i].initialised) == 0);
	}
	for (size_t i = 0; i < TYPES; i++)
		check_exclusion(types[i].initialised);
	return 0;
}
