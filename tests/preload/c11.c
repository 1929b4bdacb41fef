// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* mtx_*() and cnd_*() of C11, and spinlocks. */
#include "test.h"

#include <threads.h>

static int try_mtx(void *mtx)
{
	int result = mtx_trylock(mtx);

	if (result == thrd_success)
		CHECK(mtx_unlock(mtx) == thrd_success);
	return result;
}

static int try_elsewhere(mtx_t *mtx)
{
	thrd_t thread;
	int result;

	CHECK(thrd_create(&thread, try_mtx, mtx) == thrd_success);
	CHECK(thrd_join(thread, &result) == thrd_success);
	return result;
}

static struct timespec soon(void)
{
	return from_now(CLOCK_REALTIME, 10);
}

static int time_out(void *mtx)
{
	struct timespec deadline = soon();
	int result = mtx_timedlock(mtx, &deadline);

	CHECK(result != thrd_timedout || is_past(CLOCK_REALTIME, deadline));
	return result;
}

static void check_mtx(int type)
{
	struct timespec deadline = soon();
	thrd_t thread;
	mtx_t mtx;
	int result;

	GIVES(thrd_success, mtx_init(&mtx, type));
	GIVES(thrd_success, mtx_lock(&mtx));
	CHECK(try_elsewhere(&mtx) == thrd_busy);
	if (type & mtx_recursive) {
		GIVES(thrd_success, mtx_lock(&mtx));
		GIVES(thrd_success, mtx_trylock(&mtx));
		GIVES(thrd_success, mtx_unlock(&mtx));
		GIVES(thrd_success, mtx_unlock(&mtx));
		CHECK(try_elsewhere(&mtx) == thrd_busy);
	} else {
		GIVES(thrd_busy, mtx_trylock(&mtx));
	}
	CHECK(thrd_create(&thread, time_out, &mtx) == thrd_success);
	CHECK(thrd_join(thread, &result) == thrd_success);
	CHECK(result == thrd_timedout);
	GIVES(thrd_success, mtx_unlock(&mtx));
	if (type & mtx_recursive)
		GIVES(thrd_error, mtx_unlock(&mtx));
	CHECK(try_elsewhere(&mtx) == thrd_success);
	GIVES(thrd_success, mtx_timedlock(&mtx, &deadline));
	GIVES(thrd_success, mtx_unlock(&mtx));
	mtx_destroy(&mtx);
}

/* Each thread in its turn; two of four wake the others by broadcast. */
static struct {
	mtx_t mtx;
	cnd_t cnd;
	unsigned int turn, rounds;
} table;

static int sit(void *arg)
{
	unsigned int seat = *(unsigned int *)arg;

	CHECK(mtx_lock(&table.mtx) == thrd_success);
	for (int i = 0; i < 500; i++) {
		while (table.turn % 4 != seat)
			CHECK(cnd_wait(&table.cnd, &table.mtx) == thrd_success);
		table.turn++;
		table.rounds++;
		CHECK(cnd_broadcast(&table.cnd) == thrd_success);
	}
	CHECK(mtx_unlock(&table.mtx) == thrd_success);
	return 0;
}

static void check_cnd(void)
{
	unsigned int seats[4] = {0, 1, 2, 3};
	struct timespec deadline;
	thrd_t threads[4];

	CHECK(mtx_init(&table.mtx, mtx_plain) == thrd_success);
	CHECK(cnd_init(&table.cnd) == thrd_success);
	for (int i = 0; i < 4; i++)
		CHECK(thrd_create(&threads[i], sit, &seats[i]) == thrd_success);
	for (int i = 0; i < 4; i++)
		CHECK(thrd_join(threads[i], NULL) == thrd_success);
	CHECK(table.rounds == 2000);
	CHECK(mtx_lock(&table.mtx) == thrd_success);
	GIVES(thrd_success, cnd_signal(&table.cnd));
	deadline = soon();
	while (cnd_timedwait(&table.cnd, &table.mtx, &deadline) == thrd_success)
		;
	CHECK(is_past(CLOCK_REALTIME, deadline));
	CHECK(try_elsewhere(&table.mtx) == thrd_busy);
	CHECK(mtx_unlock(&table.mtx) == thrd_success);
	cnd_destroy(&table.cnd);
	mtx_destroy(&table.mtx);
}

static pthread_spinlock_t spin;
static volatile unsigned long spun;

static void *spin_often(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		unsigned long seen;

		if (i % 4 || pthread_spin_trylock(&spin))
			CHECK(pthread_spin_lock(&spin) == 0);
		seen = spun;
		if (i % 512 == 0)
			sched_yield();
		spun = seen + 1;
		CHECK(pthread_spin_unlock(&spin) == 0);
	}
	return arg;
}

static void check_spin(int shared)
{
	pthread_t threads[4];

	spun = 0;
	GIVES(0, pthread_spin_init(&spin, shared));
	GIVES(0, pthread_spin_lock(&spin));
	GIVES(EBUSY, pthread_spin_trylock(&spin));
	GIVES(0, pthread_spin_unlock(&spin));
	for (int i = 0; i < 4; i++)
		threads[i] = start(spin_often, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	CHECK(spun == 80000);
	GIVES(0, pthread_spin_destroy(&spin));
}

int main(void)
{
	begin();
	check_mtx(mtx_plain);
	check_mtx(mtx_timed);
	check_mtx(mtx_plain | mtx_recursive);
	check_mtx(mtx_timed | mtx_recursive);
	check_cnd();
	check_spin(PTHREAD_PROCESS_PRIVATE);
	check_spin(PTHREAD_PROCESS_SHARED);
	return 0;
}
