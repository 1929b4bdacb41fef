// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Readers of an rwlock that the library knows little of: another thread releases them, their lock
 * is initialised anew or its memory used again, or they are threads of glibc, end already, or read
 * many locks. A writer excludes them, and one that waits for them does not stop them.
 */
#include "test.h"

#include <signal.h>

#define MANY 6

/* Reads after which readers announce themselves in slots; with none they are counted. */
static const int reads_before[] = {0, 200};

static void read_often(pthread_rwlock_t *rwlock, int reads)
{
	for (int i = 0; i < reads; i++) {
		CHECK(pthread_rwlock_rdlock(rwlock) == 0);
		CHECK(pthread_rwlock_unlock(rwlock) == 0);
	}
}

static void *unlock(void *rwlock)
{
	GIVES(0, pthread_rwlock_unlock(rwlock));
	return NULL;
}

struct writing {
	pthread_rwlock_t *rwlock;
	pthread_barrier_t both;
};

static void *write_until(void *arg)
{
	struct writing *writing = arg;
	struct timespec limit = from_now(CLOCK_REALTIME, 60000);

	CHECK(pthread_rwlock_timedwrlock(writing->rwlock, &limit) == 0);
	pthread_barrier_wait(&writing->both);
	pthread_barrier_wait(&writing->both);
	CHECK(pthread_rwlock_unlock(writing->rwlock) == 0);
	return NULL;
}

/* Nobody reads the lock: another thread writes, and meanwhile this one is kept out. */
static void check_is_free(pthread_rwlock_t *rwlock)
{
	struct writing writing = {.rwlock = rwlock};
	struct timespec limit;
	pthread_t writer;

	CHECK(pthread_barrier_init(&writing.both, NULL, 2) == 0);
	writer = start(write_until, &writing);
	pthread_barrier_wait(&writing.both);
	GIVES(EBUSY, pthread_rwlock_tryrdlock(rwlock));
	limit = from_now(CLOCK_REALTIME, 5);
	GIVES(ETIMEDOUT, pthread_rwlock_timedrdlock(rwlock, &limit));
	pthread_barrier_wait(&writing.both);
	join(writer);
	CHECK(pthread_barrier_destroy(&writing.both) == 0);
	GIVES(0, pthread_rwlock_trywrlock(rwlock));
	GIVES(0, pthread_rwlock_unlock(rwlock));
}

static void *check_is_free_here(void *rwlock)
{
	check_is_free(rwlock);
	return NULL;
}

static void check_is_free_in_child(void *rwlock)
{
	GIVES(0, pthread_rwlock_rdlock(rwlock));
	GIVES(EBUSY, pthread_rwlock_trywrlock(rwlock));
	GIVES(0, pthread_rwlock_unlock(rwlock));
	check_is_free(rwlock);
}

/* Another thread releases a reader, in both orders with the reader's own acquisitions. */
static void check_release_by_another(int reads)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	read_often(&rwlock, reads);
	for (int i = 0; i < MANY; i++) {
		GIVES(0, pthread_rwlock_rdlock(&rwlock));
		join(start(unlock, &rwlock));
	}
	check_is_free(&rwlock);
	join(start(check_is_free_here, &rwlock));
	CHECK(in_child(check_is_free_in_child, &rwlock) == 0);
	read_often(&rwlock, 2 * reads);
	check_is_free(&rwlock);
	GIVES(0, pthread_rwlock_rdlock(&rwlock));
	GIVES(0, pthread_rwlock_rdlock(&rwlock));
	join(start(unlock, &rwlock));
	GIVES(EBUSY, pthread_rwlock_trywrlock(&rwlock));
	GIVES(0, pthread_rwlock_unlock(&rwlock));
	check_is_free(&rwlock);
}

static void *read_and_end(void *rwlock)
{
	GIVES(0, pthread_rwlock_rdlock(rwlock));
	return NULL;
}

/* A thread ends while it reads. */
static void check_release_after_end(int reads)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	read_often(&rwlock, reads);
	join(start(read_and_end, &rwlock));
	GIVES(EBUSY, pthread_rwlock_trywrlock(&rwlock));
	GIVES(0, pthread_rwlock_unlock(&rwlock));
	check_is_free(&rwlock);
}

/* The memory is used for another lock while the thread still reads the first one. */
static void check_new_lock(int reads, bool by_function)
{
	pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	for (int i = 0; i < MANY; i++) {
		read_often(&rwlock, reads);
		GIVES(0, pthread_rwlock_rdlock(&rwlock));
		if (by_function)
			GIVES(0, pthread_rwlock_init(&rwlock, NULL));
		else
			rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
		check_is_free(&rwlock);
		read_often(&rwlock, reads);
		check_is_free(&rwlock);
	}
	GIVES(0, pthread_rwlock_destroy(&rwlock));
}

static pthread_rwlock_t forked = PTHREAD_RWLOCK_INITIALIZER;

static void initialise_again(void *unused)
{
	(void)unused;
	forked = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	check_is_free(&forked);
	read_often(&forked, 200);
	check_is_free(&forked);
}

static void check_child(int reads)
{
	read_often(&forked, reads);
	GIVES(0, pthread_rwlock_rdlock(&forked));
	CHECK(in_child(initialise_again, NULL) == 0);
	GIVES(0, pthread_rwlock_unlock(&forked));
	GIVES(0, pthread_rwlock_wrlock(&forked));
	CHECK(in_child(initialise_again, NULL) == 0);
	GIVES(0, pthread_rwlock_unlock(&forked));
}

/* Reading again while a writer waits */

static pthread_rwlock_t locks[MANY];

static void *write_once(void *rwlock)
{
	CHECK(pthread_rwlock_wrlock(rwlock) == 0);
	CHECK(pthread_rwlock_unlock(rwlock) == 0);
	return NULL;
}

/* Reads `others` locks, and then another one twice. */
static void read_again(int others)
{
	pthread_rwlock_t *rwlock = &locks[others];
	pthread_t writer;

	for (int i = 0; i <= others; i++)
		CHECK(pthread_rwlock_rdlock(&locks[i]) == 0);
	writer = start(write_once, rwlock);
	usleep(20000);
	GIVES(0, pthread_rwlock_tryrdlock(rwlock));
	GIVES(0, pthread_rwlock_rdlock(rwlock));
	for (int i = 0; i < others; i++)
		CHECK(pthread_rwlock_unlock(&locks[i]) == 0);
	GIVES(0, pthread_rwlock_tryrdlock(rwlock));
	for (int i = 0; i < 4; i++)
		GIVES(0, pthread_rwlock_unlock(rwlock));
	join(writer);
}

static void *read_many(void *unused)
{
	read_again(MANY - 1);
	return unused;
}

static pthread_key_t key;

/* In the first and the last destructor of a thread */
static void read_at_end(void *round)
{
	if (round == (void *)1 || round == (void *)PTHREAD_DESTRUCTOR_ITERATIONS)
		read_again(0);
	if (round < (void *)PTHREAD_DESTRUCTOR_ITERATIONS)
		CHECK(pthread_setspecific(key, (char *)round + 1) == 0);
}

static void *end_reading(void *unused)
{
	read_often(&locks[0], 1);
	CHECK(pthread_setspecific(key, (void *)1) == 0);
	return unused;
}

static void read_in_timer(union sigval done)
{
	read_again(0);
	pthread_barrier_wait(done.sival_ptr);
}

static void check_timer(void)
{
	pthread_barrier_t done;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD,
				 .sigev_notify_function = read_in_timer,
				 .sigev_value.sival_ptr = &done};
	struct itimerspec soon = {.it_value.tv_nsec = 1000000};
	timer_t timer;

	CHECK(pthread_barrier_init(&done, NULL, 2) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
	pthread_barrier_wait(&done);
	CHECK(timer_delete(timer) == 0);
	CHECK(pthread_barrier_destroy(&done) == 0);
}

int main(void)
{
	begin();
	CHECK(pthread_key_create(&key, read_at_end) == 0);
	for (unsigned int i = 0; i < sizeof(reads_before) / sizeof(*reads_before); i++) {
		int reads = reads_before[i];

		check_release_by_another(reads);
		check_release_after_end(reads);
		check_new_lock(reads, false);
		check_new_lock(reads, true);
		check_child(reads);
		for (int j = 0; j < MANY; j++) {
			CHECK(pthread_rwlock_init(&locks[j], NULL) == 0);
			read_often(&locks[j], reads);
		}
		join(start(read_many, NULL));
		join(start(end_reading, NULL));
		check_timer();
	}
	return 0;
}
