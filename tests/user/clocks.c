// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Waits in a program whose clocks are not the kernel's, as under libfaketime. */
#include <sys/syscall.h>
#include <time.h>

#include "test.h"

/* How many seconds the clocks are ahead of the kernel's, and how many times as fast. */
static int64_t ahead_s, rate = 1;

/* The library's calls come here too. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int64_t begun[16];
	int64_t *begin = &begun[clock], shown;

	CHECK(syscall(SYS_clock_gettime, clock, now) == 0);
	shown = now->tv_sec * 1000000000 + now->tv_nsec;
	if (!*begin)
		*begin = shown;
	shown = *begin + (shown - *begin) * rate;
	now->tv_sec = ahead_s + shown / 1000000000;
	now->tv_nsec = shown % 1000000000;
	return 0;
}

static struct lw_mutex mutex, other;
static struct lw_rwlock rwlock;
static struct lw_cond cond;

static int wait_mutex(clockid_t clock, const struct timespec *deadline)
{
	return lw_mutex_lock_until(&mutex, clock, deadline, NULL);
}

static int wait_writer(clockid_t clock, const struct timespec *deadline)
{
	return lw_rwlock_lock_until(&rwlock, clock, deadline, NULL);
}

static int wait_reader(clockid_t clock, const struct timespec *deadline)
{
	return lw_rwlock_read_lock_until(&rwlock, clock, deadline, NULL);
}

static int wait_cond(clockid_t clock, const struct timespec *deadline)
{
	int result;

	lw_mutex_lock(&other);
	result = lw_cond_wait_until(&cond, &other, clock, deadline);
	lw_mutex_unlock(&other);
	return result;
}

static int64_t ns_since(clockid_t clock, const struct timespec *then)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (now.tv_sec - then->tv_sec) * 1000000000 + now.tv_nsec - then->tv_nsec;
}

static void *run(void *arg)
{
	int (*const waits[])(clockid_t, const struct timespec *) = {wait_mutex, wait_writer,
								    wait_reader, wait_cond};
	const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		for (size_t j = 0; j < sizeof(clocks) / sizeof(*clocks); j++) {
			struct timespec begin, deadline;

			clock_gettime(clocks[j], &begin);
			deadline = begin;
			deadline.tv_nsec += 30000000;
			deadline.tv_sec += deadline.tv_nsec / 1000000000;
			deadline.tv_nsec %= 1000000000;
			CHECK(waits[i](clocks[j], &deadline) == ETIMEDOUT);
			CHECK(ns_since(clocks[j], &begin) >= 30000000);
		}
	return arg;
}

int main(void)
{
	const struct {
		int64_t ahead_s, rate;
	} all[] = {{0, 1}, {366 * 86400, 1}, {-366 * 86400, 1}, {0, 10}};

	/* A wait by the kernel's clock would not end. */
	alarm(20);
	lw_mutex_lock(&mutex);
	lw_rwlock_lock(&rwlock);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		clock_t used = clock();
		pthread_t thread;

		ahead_s = all[i].ahead_s;
		rate = all[i].rate;
		thread_start(&thread, 0, run, NULL);
		CHECK(pthread_join(thread, NULL) == 0);
		/* Nor does a thread use up a CPU until its deadline: eight waits of 30 ms. */
		CHECK(clock() - used < CLOCKS_PER_SEC * 12 / 100);
	}
	return 0;
}
