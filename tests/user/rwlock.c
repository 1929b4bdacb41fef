// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The reader-writer lock: who excludes whom, reading again, upgrades, waits with a limit, and that
 * readers are counted or announced as the writes come.
 */
#include "test.h"

#include "reader_slots.h"

static struct lw_rwlock lock;

static uint32_t readers(void)
{
	return lw_load(&lock.readers, acquire);
}

/* The result of a trylock of another thread. */
struct attempt {
	bool reads, writes, upgradable;
};

static void *try_all(void *arg)
{
	struct attempt *got = arg;

	got->reads = lw_rwlock_read_trylock(&lock);
	if (got->reads)
		lw_rwlock_read_unlock(&lock);
	got->upgradable = lw_rwlock_upgradable_trylock(&lock);
	if (got->upgradable)
		lw_rwlock_upgradable_unlock(&lock);
	got->writes = lw_rwlock_trylock(&lock);
	if (got->writes)
		lw_rwlock_unlock(&lock);
	return NULL;
}

static void check_another_gets(bool reads, bool upgradable, bool writes)
{
	struct attempt got;
	pthread_t thread;

	thread_start(&thread, 0, try_all, &got);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(got.reads == reads && got.upgradable == upgradable && got.writes == writes);
}

static void check_who_excludes_whom(void)
{
	check_another_gets(true, true, true);
	lw_rwlock_lock(&lock);
	check_another_gets(false, false, false);
	lw_rwlock_downgrade_to_upgradable(&lock);
	check_another_gets(true, false, false);
	lw_rwlock_upgrade(&lock);
	check_another_gets(false, false, false);
	lw_rwlock_downgrade(&lock);
	check_another_gets(true, true, false);
	lw_rwlock_read_unlock(&lock);
	lw_rwlock_upgradable_lock(&lock);
	check_another_gets(true, false, false);
	CHECK(lw_rwlock_try_upgrade(&lock));
	check_another_gets(false, false, false);
	lw_rwlock_unlock(&lock);
	lw_rwlock_read_lock(&lock);
	check_another_gets(true, true, false);
	CHECK(lw_rwlock_upgradable_trylock(&lock));
	/* This thread reads the lock itself. */
	CHECK(!lw_rwlock_try_upgrade(&lock));
	lw_rwlock_upgradable_downgrade(&lock);
	lw_rwlock_read_unlock(&lock);
	check_another_gets(true, true, false);
	lw_rwlock_read_unlock(&lock);
	check_another_gets(true, true, true);
}

static void *write_once(void *unused)
{
	lw_rwlock_lock(&lock);
	lw_rwlock_unlock(&lock);
	return unused;
}

/* A thread that reads may read again while a writer waits, and another thread may not. */
static void check_reading_again(void)
{
	pthread_t writer;

	lw_rwlock_read_lock(&lock);
	thread_start(&writer, 0, write_once, NULL);
	while (!(readers() & LW_RWLOCK_WRITER))
		usleep(100);
	check_another_gets(false, false, false);
	lw_rwlock_read_lock(&lock);
	lw_rwlock_read_unlock(&lock);
	/* Long enough that the writer sleeps. */
	usleep(20000);
	lw_rwlock_read_unlock(&lock);
	CHECK(pthread_join(writer, NULL) == 0);
	check_another_gets(true, true, true);
}

static pthread_t start_waiting_writer(void)
{
	pthread_t writer;

	thread_start(&writer, 0, write_once, NULL);
	while (!(readers() & LW_RWLOCK_WRITER))
		usleep(100);
	return writer;
}

/* Reads the lock, and again while a writer waits. */
static void read_twice(void)
{
	pthread_t writer;

	lw_rwlock_read_lock(&lock);
	writer = start_waiting_writer();
	CHECK(lw_rwlock_read_trylock(&lock));
	lw_rwlock_read_unlock(&lock);
	lw_rwlock_read_unlock(&lock);
	CHECK(pthread_join(writer, NULL) == 0);
}

static pthread_key_t key;

/* The library's own destructor has run before the second call. */
static void read_at_end(void *round)
{
	if (round == (void *)1)
		CHECK(pthread_setspecific(key, (void *)2) == 0);
	read_twice();
}

static void *end_reading(void *unused)
{
	read_twice();
	CHECK(pthread_setspecific(key, (void *)1) == 0);
	return unused;
}

static void check_reading_at_end(void)
{
	pthread_t thread;

	CHECK(pthread_key_create(&key, read_at_end) == 0);
	thread_start(&thread, 0, end_reading, NULL);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(pthread_key_delete(key) == 0);
}

static void *read_unlock(void *unused)
{
	lw_rwlock_read_unlock(&lock);
	return unused;
}

/* Other threads release the readers of this one: the lock is free then, and nobody is announced. */
static void check_release_by_another(void)
{
	pthread_t thread;

	for (int i = 0; i < 2 * LW_READS_PER_SLOT; i++) {
		lw_rwlock_read_lock(&lock);
		thread_start(&thread, 0, read_unlock, NULL);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	check_another_gets(true, true, true);
	lw_rwlock_lock(&lock);
	CHECK(!lw_rwlock_read_trylock(&lock));
	lw_rwlock_unlock(&lock);
	lw_rwlock_read_lock(&lock);
	lw_rwlock_read_lock(&lock);
	thread_start(&thread, 0, read_unlock, NULL);
	CHECK(pthread_join(thread, NULL) == 0);
	check_another_gets(true, true, false);
	lw_rwlock_read_unlock(&lock);
	check_another_gets(true, true, true);
}

static void *read_with_priority(void *unused)
{
	CHECK(lw_thread_set_priority(LW_PRIORITY_ON) == 0);
	CHECK(lw_rwlock_read_trylock(&lock));
	lw_rwlock_read_unlock(&lock);
	return unused;
}

/* A priority thread reads though a writer waits, but not while one writes. */
static void check_priority(void)
{
	pthread_t thread, writer;

	lw_rwlock_read_lock(&lock);
	writer = start_waiting_writer();
	check_another_gets(false, false, false);
	thread_start(&thread, 0, read_with_priority, NULL);
	CHECK(pthread_join(thread, NULL) == 0);
	lw_rwlock_read_unlock(&lock);
	CHECK(pthread_join(writer, NULL) == 0);
}

static void read_often(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		lw_rwlock_read_lock(&lock);
		lw_rwlock_read_unlock(&lock);
	}
}

/* SPREAD after reads in a row, and no longer after a write, if the tunable says so. */
static void check_spreading(void)
{
	uint64_t after = lw_tunable_value(LW_TUNABLE_rwlock_spread_after);

	CHECK(lw_set_tunable(LW_TUNABLE_rwlock_gather, 1) == 0);
	write_once(NULL);
	write_once(NULL);
	read_often((unsigned int)after - 1);
	CHECK(!(readers() & LW_RWLOCK_SPREAD));
	write_once(NULL);
	read_often((unsigned int)after);
	CHECK(readers() == LW_RWLOCK_SPREAD);
	check_who_excludes_whom();
	read_often((unsigned int)after);
	check_reading_again();
	write_once(NULL);
	CHECK(readers() == 0);
	check_who_excludes_whom();
	check_reading_again();
	CHECK(lw_set_tunable(LW_TUNABLE_rwlock_gather, UINT32_MAX) == 0);
	read_often((unsigned int)after);
	write_once(NULL);
	CHECK(readers() == LW_RWLOCK_SPREAD);
	CHECK(lw_set_tunable(LW_TUNABLE_rwlock_spread_after, 0) == 0);
	CHECK(lw_set_tunable(LW_TUNABLE_rwlock_gather, 1) == 0);
	write_once(NULL);
	read_often(1000);
	CHECK(!(readers() & LW_RWLOCK_SPREAD));
	CHECK(lw_set_tunable(LW_TUNABLE_rwlock_spread_after, after) == 0);
}

/* More locks than a slot has announcements for. */
static void check_many_locks(void)
{
	static struct lw_rwlock many[2 * LW_READS_PER_SLOT];
	const unsigned int n = sizeof(many) / sizeof(many[0]);

	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int reads = 0; reads < 100; reads++) {
			lw_rwlock_read_lock(&many[i]);
			lw_rwlock_read_unlock(&many[i]);
		}
	}
	for (unsigned int i = 0; i < n; i++)
		lw_rwlock_read_lock(&many[i]);
	for (unsigned int i = 0; i < n; i++)
		CHECK(!lw_rwlock_trylock(&many[i]));
	for (unsigned int i = n; i-- > 0;) {
		lw_rwlock_read_unlock(&many[i]);
		CHECK(lw_rwlock_trylock(&many[i]));
		lw_rwlock_unlock(&many[i]);
	}
}

static struct timespec from_now(long ns)
{
	struct timespec time;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
	time.tv_nsec += ns;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

struct limited {
	bool reads, cancelled;
};

static void *wait_in_vain(void *arg)
{
	const struct limited *how = arg;
	struct timespec soon = from_now(3000000);
	struct lw_cancel cancel = LW_CANCEL_INIT;
	int expected = how->cancelled ? ECANCELED : ETIMEDOUT;

	if (how->cancelled)
		lw_cancel(&cancel);
	CHECK(how->reads
		      ? lw_rwlock_read_lock_until(&lock, CLOCK_MONOTONIC, &soon, &cancel) ==
				expected
		      : lw_rwlock_lock_until(&lock, CLOCK_MONOTONIC, &soon, &cancel) == expected);
	CHECK(lw_rwlock_lock_until(&lock, CLOCK_PROCESS_CPUTIME_ID, &soon, NULL) == EINVAL);
	return NULL;
}

static void check_in_vain(bool reads)
{
	for (int cancelled = 0; cancelled < 2; cancelled++) {
		struct limited how = {reads, cancelled};
		pthread_t thread;

		thread_start(&thread, 0, wait_in_vain, &how);
		CHECK(pthread_join(thread, NULL) == 0);
	}
}

/* Waits end at their limit, for readers and for the writer behind a reader of either kind. */
static void check_limits(void)
{
	uint64_t after = lw_tunable_value(LW_TUNABLE_rwlock_spread_after);
	struct timespec past = {0};

	CHECK(lw_rwlock_lock_until(&lock, CLOCK_MONOTONIC, &past, NULL) == 0);
	check_in_vain(true);
	check_in_vain(false);
	lw_rwlock_unlock(&lock);
	for (int spread = 0; spread < 2; spread++) {
		read_often(spread ? (unsigned int)after : 0);
		CHECK(lw_rwlock_read_lock_until(&lock, CLOCK_MONOTONIC, &past, NULL) == 0);
		CHECK(!(readers() & LW_RWLOCK_SPREAD) == !spread);
		check_in_vain(false);
		check_another_gets(true, true, false);
		lw_rwlock_read_unlock(&lock);
		check_another_gets(true, true, true);
	}
}

/*
 * A thread that reads keeps its slot though its waits for a mutex end at their limit: the slot
 * could be abandoned otherwise.
 */
static void *be_cancelled(void *arg)
{
	struct lw_mutex *held = arg;
	unsigned int slot = lw_thread_attach();
	struct timespec soon;

	lw_rwlock_read_lock(&lock);
	for (int i = 0; i < 4; i++) {
		soon = from_now(500000);
		CHECK(lw_mutex_lock_until(held, CLOCK_MONOTONIC, &soon, NULL) == ETIMEDOUT);
		CHECK(lw_thread_attach() == slot);
	}
	lw_rwlock_read_unlock(&lock);
	return NULL;
}

static void check_slots_stay(void)
{
	static struct lw_mutex held;
	pthread_t threads[2];

	lw_mutex_lock(&held);
	for (int i = 0; i < 2; i++)
		thread_start(&threads[i], 0, be_cancelled, &held);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	lw_mutex_unlock(&held);
	check_another_gets(true, true, true);
}

/* The forking thread reads the lock; the other reader is not here. */
static void child(void *unused)
{
	(void)unused;
	lw_rwlock_read_unlock(&lock);
	lw_rwlock_lock(&lock);
	lw_rwlock_unlock(&lock);
	read_often(1000);
}

static void *read_until(void *arg)
{
	pthread_barrier_t *both = arg;

	lw_rwlock_read_lock(&lock);
	pthread_barrier_wait(both);
	pthread_barrier_wait(both);
	lw_rwlock_read_unlock(&lock);
	return NULL;
}

/* In the child of a fork the announcements of other threads are gone. */
static void check_fork(void)
{
	pthread_barrier_t both;
	pthread_t thread;

	read_often((unsigned int)lw_tunable_value(LW_TUNABLE_rwlock_spread_after));
	CHECK(readers() & LW_RWLOCK_SPREAD);
	CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
	thread_start(&thread, 0, read_until, &both);
	lw_rwlock_read_lock(&lock);
	pthread_barrier_wait(&both);
	CHECK(in_child(child, NULL) == 0);
	check_another_gets(true, true, false);
	lw_rwlock_read_unlock(&lock);
	check_another_gets(true, true, false);
	pthread_barrier_wait(&both);
	CHECK(pthread_join(thread, NULL) == 0);
	pthread_barrier_destroy(&both);
	check_another_gets(true, true, true);
}

int main(void)
{
	check_who_excludes_whom();
	check_reading_again();
	check_spreading();
	for (int spread = 0; spread < 2; spread++) {
		read_often(spread ? 1000 : 0);
		check_reading_at_end();
		check_priority();
	}
	check_many_locks();
	check_limits();
	check_slots_stay();
	check_fork();
	check_release_by_another();
	read_often(1000);
	check_release_by_another();
	return 0;
}
