// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Reader-writer locks: who excludes whom, errors, deadlines, kinds, and rwlocks that processes
 * share. */
#include "test.h"

#define THREADS 4
#define TURNS	20000

static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};

typedef int take(pthread_rwlock_t *);

struct attempt {
	take *take;
	pthread_rwlock_t *rwlock;
};

static void *attempt(void *arg)
{
	struct attempt *attempt = arg;
	int error;

	errno = 77;
	error = attempt->take(attempt->rwlock);
	CHECK(errno == 77);
	if (!error)
		CHECK(pthread_rwlock_unlock(attempt->rwlock) == 0);
	return (void *)(intptr_t)error;
}

/* The result of a trylock of another thread, which then releases the lock. */
static int another(take *take, pthread_rwlock_t *rwlock)
{
	struct attempt with = {take, rwlock};

	return (int)(intptr_t)join(start(attempt, &with));
}

static void check_exclusion(pthread_rwlock_t *rwlock)
{
	GIVES(0, pthread_rwlock_wrlock(rwlock));
	CHECK(another(pthread_rwlock_tryrdlock, rwlock) == EBUSY);
	CHECK(another(pthread_rwlock_trywrlock, rwlock) == EBUSY);
	GIVES(EBUSY, pthread_rwlock_tryrdlock(rwlock));
	GIVES(EBUSY, pthread_rwlock_trywrlock(rwlock));
	GIVES(EDEADLK, pthread_rwlock_rdlock(rwlock));
	GIVES(EDEADLK, pthread_rwlock_wrlock(rwlock));
	GIVES(0, pthread_rwlock_unlock(rwlock));
	/* Often enough that readers are counted at first, and later announce themselves. */
	for (int i = 0; i < 200; i++) {
		GIVES(0, pthread_rwlock_rdlock(rwlock));
		CHECK(i % 50 || another(pthread_rwlock_trywrlock, rwlock) == EBUSY);
		CHECK(i % 50 || another(pthread_rwlock_rdlock, rwlock) == 0);
		GIVES(0, pthread_rwlock_tryrdlock(rwlock));
		GIVES(0, pthread_rwlock_unlock(rwlock));
		CHECK(i % 50 || another(pthread_rwlock_trywrlock, rwlock) == EBUSY);
		GIVES(0, pthread_rwlock_unlock(rwlock));
	}
	CHECK(another(pthread_rwlock_trywrlock, rwlock) == 0);
}

static int read_until(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *time)
{
	return clock == CLOCK_REALTIME && time->tv_nsec % 2
		       ? pthread_rwlock_timedrdlock(rwlock, time)
		       : pthread_rwlock_clockrdlock(rwlock, clock, time);
}

static int write_until(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *time)
{
	return clock == CLOCK_REALTIME && time->tv_nsec % 2
		       ? pthread_rwlock_timedwrlock(rwlock, time)
		       : pthread_rwlock_clockwrlock(rwlock, clock, time);
}

static pthread_rwlock_t timed = PTHREAD_RWLOCK_INITIALIZER;

static void *time_out(void *writer_holds)
{
	for (unsigned int i = 0; i < 4; i++) {
		clockid_t clock = clocks[i / 2];
		struct timespec past = from_now(clock, -1000), soon;

		GIVES(ETIMEDOUT, write_until(&timed, clock, &past));
		soon = from_now(clock, 10);
		soon.tv_nsec = soon.tv_nsec / 2 * 2 + i % 2;
		GIVES(ETIMEDOUT, write_until(&timed, clock, &soon));
		CHECK(is_past(clock, soon));
		if (!writer_holds)
			continue;
		soon = from_now(clock, 10);
		soon.tv_nsec = soon.tv_nsec / 2 * 2 + i % 2;
		GIVES(ETIMEDOUT, read_until(&timed, clock, &soon));
		CHECK(is_past(clock, soon));
	}
	return NULL;
}

static void check_deadlines(void)
{
	struct timespec past = from_now(CLOCK_REALTIME, -1000);
	struct timespec bad = {.tv_sec = past.tv_sec + 100, .tv_nsec = 1000000000};

	/* A lock that is free is acquired, but not with a wrong deadline. */
	GIVES(0, pthread_rwlock_timedwrlock(&timed, &past));
	GIVES(EDEADLK, pthread_rwlock_timedwrlock(&timed, &past));
	GIVES(EDEADLK, pthread_rwlock_timedrdlock(&timed, &past));
	join(start(time_out, &timed));
	GIVES(0, pthread_rwlock_unlock(&timed));
	GIVES(0, pthread_rwlock_timedrdlock(&timed, &past));
	join(start(time_out, NULL));
	GIVES(0, pthread_rwlock_unlock(&timed));
	GIVES(EINVAL, pthread_rwlock_timedrdlock(&timed, &bad));
	GIVES(EINVAL, pthread_rwlock_timedwrlock(&timed, &bad));
	GIVES(EINVAL, pthread_rwlock_clockrdlock(&timed, CLOCK_PROCESS_CPUTIME_ID, &past));
	GIVES(EINVAL, pthread_rwlock_clockwrlock(&timed, CLOCK_PROCESS_CPUTIME_ID, &past));
	CHECK(another(pthread_rwlock_trywrlock, &timed) == 0);
}

struct counted {
	pthread_rwlock_t rwlock;
	long first, second;
};

static void *count(void *arg)
{
	struct counted *counted = arg;

	for (int turn = 0; turn < TURNS; turn++) {
		if (turn % 10 == 0) {
			CHECK(pthread_rwlock_wrlock(&counted->rwlock) == 0);
			counted->first++;
			counted->second++;
		} else {
			CHECK(pthread_rwlock_rdlock(&counted->rwlock) == 0);
			CHECK(counted->first == counted->second);
		}
		CHECK(pthread_rwlock_unlock(&counted->rwlock) == 0);
	}
	return NULL;
}

static void check_counts(void)
{
	static struct counted counted = {.rwlock = PTHREAD_RWLOCK_INITIALIZER};
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(count, &counted);
	for (int i = 0; i < THREADS; i++)
		join(threads[i]);
	CHECK(counted.first == THREADS * TURNS / 10 && counted.second == counted.first);
}

static pthread_rwlock_t nested = PTHREAD_RWLOCK_INITIALIZER;

static void *write_once(void *unused)
{
	CHECK(pthread_rwlock_wrlock(&nested) == 0);
	CHECK(pthread_rwlock_unlock(&nested) == 0);
	return unused;
}

/* Kinds that prefer readers let a thread read again while a writer waits. */
static void check_reading_again(void)
{
	for (int i = 0; i < 100; i++) {
		CHECK(pthread_rwlock_rdlock(&nested) == 0);
		CHECK(pthread_rwlock_unlock(&nested) == 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_t writer;

		GIVES(0, pthread_rwlock_rdlock(&nested));
		writer = start(write_once, NULL);
		usleep(20000);
		GIVES(0, pthread_rwlock_rdlock(&nested));
		GIVES(0, pthread_rwlock_unlock(&nested));
		GIVES(0, pthread_rwlock_unlock(&nested));
		join(writer);
	}
}

static void check_kinds(void)
{
	static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
	static pthread_rwlock_t by_initialiser = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

	check_exclusion(&by_initialiser);
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		pthread_rwlockattr_t attr;
		pthread_rwlock_t rwlock;

		CHECK(pthread_rwlockattr_init(&attr) == 0);
		CHECK(pthread_rwlockattr_setkind_np(&attr, kinds[i]) == 0);
		memset(&rwlock, 0xff, sizeof(rwlock));
		GIVES(0, pthread_rwlock_init(&rwlock, &attr));
		check_exclusion(&rwlock);
		GIVES(0, pthread_rwlock_destroy(&rwlock));
		CHECK(pthread_rwlockattr_destroy(&attr) == 0);
	}
}

/* A thread may read many rwlocks at a time, each more than once, and release them in any order. */
static void check_many_reads(void)
{
	static pthread_rwlock_t many[12];

	for (int i = 0; i < 12; i++)
		CHECK(pthread_rwlock_init(&many[i], NULL) == 0);
	for (int turn = 0; turn < 100; turn++) {
		for (int i = 0; i < 24; i++)
			CHECK(pthread_rwlock_rdlock(&many[i % 12]) == 0);
		for (int i = 0; i < 24; i++) {
			CHECK(turn % 50 ||
			      another(pthread_rwlock_trywrlock, &many[i % 12]) == EBUSY);
			CHECK(pthread_rwlock_unlock(&many[i * 5 % 12]) == 0);
			CHECK(pthread_rwlock_rdlock(&many[i * 5 % 12]) == 0);
		}
		for (int i = 0; i < 24; i++)
			CHECK(pthread_rwlock_unlock(&many[i * 7 % 12]) == 0);
		for (int i = 0; i < 12; i++)
			CHECK(turn % 50 || another(pthread_rwlock_trywrlock, &many[i]) == 0);
	}
}

static void count_in_child(void *counted)
{
	count(counted);
}

/* glibc serves an rwlock that processes share. */
static void check_shared(void)
{
	struct counted *counted = shared_memory(sizeof(*counted));
	pthread_rwlockattr_t attr;
	pthread_t thread;

	CHECK(pthread_rwlockattr_init(&attr) == 0);
	CHECK(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_rwlock_init(&counted->rwlock, &attr) == 0);
	thread = start(count, counted);
	CHECK(in_child(count_in_child, counted) == 0);
	join(thread);
	CHECK(counted->first == 2 * TURNS / 10 && counted->second == counted->first);
	CHECK(pthread_rwlock_destroy(&counted->rwlock) == 0);
}

int main(void)
{
	static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;

	begin();
	check_exclusion(&plain);
	check_kinds();
	check_deadlines();
	check_counts();
	check_reading_again();
	check_many_reads();
	check_shared();
	return 0;
}
