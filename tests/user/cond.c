// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Condition variables: which waiters a signal wakes, and when they may be destroyed. */
#include "waiters.h"

#define WAITERS 8

static struct lw_mutex mutex;
static struct lw_cond cond;
static unsigned int waiting, woken;

static void await(const unsigned int *count, unsigned int n)
{
	for (bool there = false; !there; usleep(100)) {
		lw_mutex_lock(&mutex);
		there = *count >= n;
		lw_mutex_unlock(&mutex);
	}
}

static void *wait_once(void *arg)
{
	lw_mutex_lock(&mutex);
	waiting++;
	lw_cond_wait(&cond, &mutex);
	*(unsigned int *)arg = ++woken;
	lw_mutex_unlock(&mutex);
	return NULL;
}

/* Signals wake waiters in order of arrival, and never a waiter that arrives later. */
static void check_order(void)
{
	pthread_t threads[WAITERS];
	unsigned int place[WAITERS] = {0};

	watch("order");
	waiting = woken = 0;
	lw_cond_signal(&cond);
	lw_cond_broadcast(&cond);
	for (unsigned int i = 0; i < WAITERS; i++) {
		thread_start(&threads[i], 0, wait_once, &place[i]);
		await(&waiting, i + 1);
	}
	for (unsigned int i = 0; i < WAITERS / 2; i++) {
		lw_cond_signal(&cond);
		await(&woken, i + 1);
		CHECK(place[i] == i + 1);
	}
	lw_mutex_lock(&mutex);
	CHECK(woken == WAITERS / 2);
	lw_mutex_unlock(&mutex);
	lw_cond_broadcast(&cond);
	for (unsigned int i = 0; i < WAITERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(woken == WAITERS);
}

static void check_times(clockid_t clock)
{
	struct timespec invalid = {.tv_nsec = -1}, past = {0}, soon;

	watch("times");
	lw_mutex_lock(&mutex);
	CHECK(lw_cond_wait_until(&cond, &mutex, clock, &invalid) == EINVAL);
	CHECK(lw_cond_wait_until(&cond, &mutex, CLOCK_BOOTTIME, &past) == EINVAL);
	CHECK(lw_cond_wait_until(&cond, &mutex, clock, &past) == ETIMEDOUT);
	test_clock = clock;
	soon = from_now(5000000);
	CHECK(lw_cond_wait_until(&cond, &mutex, clock, &soon) == ETIMEDOUT);
	CHECK(is_past(&soon));
	CHECK(!lw_mutex_trylock(&mutex));
	lw_mutex_unlock(&mutex);
}

/* Items pass through a buffer for one, while waits time out. No item is lost or doubled. */
#define ITEMS 20000
static struct {
	struct lw_cond empty, full;
	bool there;
	unsigned int produced, consumed, late;
} place;

static bool wait_for(struct lw_cond *which, unsigned int *limit)
{
	struct timespec soon = from_now((long)(*limit = *limit * 1103515245 + 12345) % 20000);

	if (*limit % 3)
		return lw_cond_wait_until(which, &mutex, test_clock, &soon) == ETIMEDOUT;
	lw_cond_wait(which, &mutex);
	return false;
}

static void *produce(void *arg)
{
	unsigned int limit = (unsigned int)(uintptr_t)arg;

	lw_mutex_lock(&mutex);
	while (place.produced < ITEMS) {
		if (place.there) {
			place.late += wait_for(&place.empty, &limit);
			continue;
		}
		place.there = true;
		if (++place.produced == ITEMS)
			lw_cond_broadcast(&place.empty);
		lw_cond_signal(&place.full);
	}
	lw_mutex_unlock(&mutex);
	return NULL;
}

static void *consume(void *arg)
{
	unsigned int limit = (unsigned int)(uintptr_t)arg;

	lw_mutex_lock(&mutex);
	while (place.consumed < ITEMS) {
		if (!place.there) {
			place.late += wait_for(&place.full, &limit);
			continue;
		}
		place.there = false;
		if (++place.consumed == ITEMS)
			lw_cond_broadcast(&place.full);
		lw_cond_signal(&place.empty);
	}
	lw_mutex_unlock(&mutex);
	return NULL;
}

static void check_items(void)
{
	pthread_t threads[2 * WAITERS];

	watch("items");
	for (unsigned int i = 0; i < 2 * WAITERS; i++)
		thread_start(&threads[i], 0, i % 2 ? consume : produce, (void *)(uintptr_t)(i + 1));
	for (unsigned int i = 0; i < 2 * WAITERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(place.produced == ITEMS && place.consumed == ITEMS && !place.there);
	CHECK(place.late);
}

/*
 * A thread that knows that no thread waits overwrites the condition variable: neither waiters nor
 * signallers may access it any more.
 */
static struct lw_cond *brief;
static unsigned int left;

static void *wait_briefly(void *arg)
{
	unsigned int limit = (unsigned int)(uintptr_t)arg;
	struct lw_cond *mine = brief;

	lw_mutex_lock(&mutex);
	waiting++;
	if (limit % 2) {
		struct timespec soon = from_now(limit % 7 * 10000);

		lw_cond_wait_until(mine, &mutex, test_clock, &soon);
	} else {
		lw_cond_wait(mine, &mutex);
	}
	if (--left == 0) {
		lw_cond_destroy(mine);
		memset(mine, 0xff, sizeof(*mine));
	}
	lw_mutex_unlock(&mutex);
	return NULL;
}

/* Deadlines that pass during the broadcast: every wait ends. */
static void check_crossing(void)
{
	watch("crossing");
	for (unsigned int round = 0; round < 500; round++) {
		struct lw_cond now = LW_COND_INIT;
		pthread_t threads[4];

		brief = &now;
		waiting = 0;
		left = 4;
		for (unsigned int i = 0; i < 4; i++)
			thread_start(&threads[i], 0, wait_briefly, (void *)(uintptr_t)(round + i));
		await(&waiting, 4);
		/* The last waiter may destroy it as soon as all have been signalled. */
		lw_cond_broadcast(&now);
		for (unsigned int i = 0; i < 4; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
}

int main(void)
{
	check_order();
	check_times(CLOCK_MONOTONIC);
	check_times(CLOCK_REALTIME);
	check_items();
	check_crossing();
	return 0;
}
