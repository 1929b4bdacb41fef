// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Locks whose waiters park: many threads, futex calls that fail, signals, pthread_cancel(). */
#include "waiters.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define THREADS 24
#define TURNS	1000

/* How many of 256 futex waits fail at once. */
static atomic_uint failing;
static atomic_uint failed_eintr, failed_eagain;

/* Replaces the function of the C library. Makes futex waits fail in ways that are allowed. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	static __thread unsigned int random;
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_futex &&
	    ((arguments[1] & 0x7f) == FUTEX_WAIT || (arguments[1] & 0x7f) == FUTEX_WAIT_BITSET)) {
		random = random * 1103515245 + 12345 + (unsigned int)(uintptr_t)&random;
		if ((random >> 16 & 0xff) < atomic_load(&failing)) {
			bool eintr = random >> 24 & 1;

			atomic_fetch_add(eintr ? &failed_eintr : &failed_eagain, 1);
			errno = eintr ? EINTR : EAGAIN;
			return -1;
		}
	}
	return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		    arguments[5]);
}

static void *contend(void *arg)
{
	contend_for(arg, TURNS);
	return NULL;
}

static void check_exclusion(const struct subject *subject)
{
	pthread_t threads[THREADS];
	uint64_t before = halts();

	watch(subject->name);
	acquired = 0;
	/* Hold the lock until all threads have started and some have parked. */
	subject->lock();
	for (int i = 0; i < THREADS; i++)
		thread_start(&threads[i], 0, contend, (void *)subject);
	await_halts(before, 2);
	subject->unlock();
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(acquired == THREADS * TURNS);
	check_free(subject);
}

static void check_failures(const struct subject *subject)
{
	atomic_store(&failed_eintr, 0);
	atomic_store(&failed_eagain, 0);
	atomic_store(&failing, 192);
	check_exclusion(subject);
	atomic_store(&failing, 0);
	CHECK(atomic_load(&failed_eintr) > 0 && atomic_load(&failed_eagain) > 0);
}

static atomic_uint interruptions;

static void on_interruption(int signal)
{
	(void)signal;
	atomic_fetch_add(&interruptions, 1);
}

static void check_signals(const struct subject *subject)
{
	timer_t timer = interrupt_with(on_interruption);

	check_exclusion(subject);
	CHECK(timer_delete(timer) == 0);
	CHECK(atomic_load(&interruptions) > 0);
}

static void *lock_and_be_cancelled(void *arg)
{
	const struct subject *subject = arg;

	subject->lock();
	hold();
	subject->unlock();
	for (;;)
		pthread_testcancel();
	return NULL;
}

/* A wait for a lock is no cancellation point: a cancelled thread does not leave the queue. */
static void check_cancelled_thread(const struct subject *subject)
{
	pthread_t threads[3];
	uint64_t before = halts();
	void *result;

	watch(subject->name);
	acquired = 0;
	subject->lock();
	for (int i = 0; i < 3; i++)
		thread_start(&threads[i], 0, lock_and_be_cancelled, (void *)subject);
	await_halts(before, 3);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_cancel(threads[i]) == 0);
	usleep(2000);
	CHECK(acquired == 0);
	subject->unlock();
	for (int i = 0; i < 3; i++) {
		CHECK(pthread_join(threads[i], &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	CHECK(acquired == 3);
	check_free(subject);
}

static void *lock_once(void *arg)
{
	const struct subject *subject = arg;

	subject->lock();
	acquired++;
	subject->unlock();
	return NULL;
}

/* Returns the voluntary context switches of all threads but this one. */
static long switches(void)
{
	struct rusage all, mine;

	CHECK(getrusage(RUSAGE_SELF, &all) == 0);
	CHECK(getrusage(RUSAGE_THREAD, &mine) == 0);
	return all.ru_nvcsw - mine.ru_nvcsw;
}

/*
 * A thread is preempted in the middle of a release. The waiter must yield the CPU: it cannot park.
 * The mutex has no such state. There the release misses that the waiter parks.
 */
static void check_stopped_unlock(const struct subject *subject)
{
	pthread_t thread;
	long before = switches();

	watch(subject->name);
	acquired = 0;
	lw_store(&subject->word->val, subject->unlocked ? LW_LOCKED : LW_UNLOCKING, relaxed);
	thread_start(&thread, 0, lock_once, (void *)subject);
	while (switches() < before + 10)
		usleep(200);
	CHECK(acquired == 0);
	lw_field_store(subject->word, locked, 0, release);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(acquired == 1);
	check_free(subject);
}

int main(void)
{
	for (size_t i = 0; i < SUBJECTS; i++) {
		check_exclusion(&subjects[i]);
		check_failures(&subjects[i]);
		check_signals(&subjects[i]);
		check_cancelled_thread(&subjects[i]);
		check_stopped_unlock(&subjects[i]);
	}
	return 0;
}
