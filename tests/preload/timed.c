// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Waits with a deadline, for mutexes and condition variables, by both clocks. */
#include "test.h"

static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
			    PTHREAD_MUTEX_ADAPTIVE_NP};

static int lock_until(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
	/* Waits by CLOCK_REALTIME use both functions for them. */
	return clock == CLOCK_REALTIME && time->tv_nsec % 2
		       ? pthread_mutex_timedlock(mutex, time)
		       : pthread_mutex_clocklock(mutex, clock, time);
}

struct holder {
	pthread_mutex_t *mutex;
	pthread_barrier_t held, enough;
};

static void *hold(void *arg)
{
	struct holder *holder = arg;

	CHECK(pthread_mutex_lock(holder->mutex) == 0);
	pthread_barrier_wait(&holder->held);
	pthread_barrier_wait(&holder->enough);
	CHECK(pthread_mutex_unlock(holder->mutex) == 0);
	return NULL;
}

static void check_mutex(int type, clockid_t clock)
{
	pthread_mutex_t mutex = typed_mutex(type);
	struct timespec past = from_now(clock, -1000), bad = from_now(clock, 10000);
	struct timespec soon, before_1970 = {-1, 0};
	struct holder holder = {.mutex = &mutex};
	pthread_t thread;

	bad.tv_nsec = 1000000000;
	/* The deadline matters only if the mutex is not free. */
	GIVES(0, lock_until(&mutex, clock, &past));
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	GIVES(0, lock_until(&mutex, clock, &bad));
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	GIVES(EINVAL, pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past));

	CHECK(pthread_barrier_init(&holder.held, NULL, 2) == 0);
	CHECK(pthread_barrier_init(&holder.enough, NULL, 2) == 0);
	thread = start(hold, &holder);
	pthread_barrier_wait(&holder.held);
	GIVES(ETIMEDOUT, lock_until(&mutex, clock, &past));
	GIVES(ETIMEDOUT, lock_until(&mutex, clock, &before_1970));
	GIVES(EINVAL, lock_until(&mutex, clock, &bad));
	bad.tv_nsec = -1;
	GIVES(EINVAL, lock_until(&mutex, clock, &bad));
	for (int i = 0; i < 2; i++) {
		soon = from_now(clock, 20);
		soon.tv_nsec = soon.tv_nsec / 2 * 2 + i;
		GIVES(ETIMEDOUT, lock_until(&mutex, clock, &soon));
		CHECK(is_past(clock, soon));
	}
	pthread_barrier_wait(&holder.enough);
	soon = from_now(clock, 1000L * HANG_SECONDS);
	GIVES(0, lock_until(&mutex, clock, &soon));
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	join(thread);
	CHECK(is_free(&mutex));
	GIVES(0, pthread_mutex_destroy(&mutex));
}

/* Many waits that time out and some that do not, for one mutex. */
struct crowd {
	pthread_mutex_t mutex;
	unsigned long count;
};

#define CROWD 12

static void *come_and_go(void *arg)
{
	struct crowd *crowd = arg;
	unsigned long got = 0;

	for (int i = 0; i < 400; i++) {
		clockid_t clock = clocks[i % 2];
		struct timespec time = from_now(clock, i % 3);
		int error = i % 5 ? lock_until(&crowd->mutex, clock, &time)
				  : pthread_mutex_lock(&crowd->mutex);

		if (error) {
			CHECK(error == ETIMEDOUT && is_past(clock, time));
			continue;
		}
		got++;
		crowd->count++;
		if (i % 16 == 0)
			usleep(300);
		CHECK(pthread_mutex_unlock(&crowd->mutex) == 0);
	}
	return (void *)got;
}

static void check_crowd(void)
{
	struct crowd crowd = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	pthread_t threads[CROWD];
	unsigned long got = 0;

	for (int i = 0; i < CROWD; i++)
		threads[i] = start(come_and_go, &crowd);
	for (int i = 0; i < CROWD; i++)
		got += (unsigned long)join(threads[i]);
	CHECK(got == crowd.count && got >= CROWD * 80);
	CHECK(is_free(&crowd.mutex));
}

/* Condition variables */

static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		      const struct timespec *time, bool by_attr)
{
	return by_attr ? pthread_cond_timedwait(cond, mutex, time)
		       : pthread_cond_clockwait(cond, mutex, clock, time);
}

static void check_cond(clockid_t clock, bool by_attr)
{
	pthread_mutex_t mutex = typed_mutex(PTHREAD_MUTEX_ERRORCHECK);
	struct timespec past = from_now(clock, -1000), soon, bad = past, before_1970 = {-1, 0};
	pthread_condattr_t attr;
	pthread_cond_t cond;

	CHECK(pthread_condattr_init(&attr) == 0);
	if (by_attr)
		CHECK(pthread_condattr_setclock(&attr, clock) == 0);
	CHECK(pthread_cond_init(&cond, &attr) == 0);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	for (int i = 0; i < 2; i++) {
		bad.tv_nsec = i ? -1 : 1000000000;
		GIVES(EINVAL, wait_until(&cond, &mutex, clock, &bad, by_attr));
	}
	GIVES(ETIMEDOUT, wait_until(&cond, &mutex, clock, &past, by_attr));
	GIVES(ETIMEDOUT, wait_until(&cond, &mutex, clock, &before_1970, by_attr));
	soon = from_now(clock, 20);
	errno = 77;
	while (wait_until(&cond, &mutex, clock, &soon, by_attr) == 0)
		;
	CHECK(errno == 77 && is_past(clock, soon));
	GIVES(EINVAL, pthread_cond_clockwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &soon));
	/* The mutex is still held. */
	CHECK(!is_free(&mutex));
	GIVES(0, pthread_mutex_unlock(&mutex));
	GIVES(EPERM, wait_until(&cond, &mutex, clock, &soon, by_attr));
	GIVES(0, pthread_cond_destroy(&cond));
	CHECK(pthread_condattr_destroy(&attr) == 0);
}

int main(void)
{
	begin();
	for (size_t c = 0; c < 2; c++) {
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			check_mutex(types[t], clocks[c]);
		check_cond(clocks[c], false);
		check_cond(clocks[c], true);
	}
	check_crowd();
	return 0;
}
