// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A lock that is held and waited for at a fork. The child, where no thread waits, goes on using it.
 */
#include "waiters.h"

#define WAITERS 3
#define THREADS 8
#define TURNS	200
#define FORKS	20

static atomic_bool stop;

static void *contend(void *arg)
{
	contend_for(arg, TURNS);
	return NULL;
}

/* The holder of the lock has forked. The threads that queue for it are not in the child. */
static void child(void *arg)
{
	const struct subject *subject = arg;
	struct timespec soon = from_now(1000000);
	pthread_t threads[THREADS];
	uint64_t before = halts();

	watch(subject->name);
	inside = false;
	acquired = 0;
	CHECK(!subject->trylock());
	if (subject->lock_until)
		CHECK(subject->lock_until(&soon, NULL) == ETIMEDOUT);
	subject->unlock();
	subject->lock();
	/* These threads queue behind nodes of threads that are not in the child. */
	for (int i = 0; i < THREADS; i++)
		thread_start(&threads[i], 0, contend, (void *)subject);
	await_halts(before, 3);
	subject->unlock();
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(acquired == THREADS * TURNS);
	check_free(subject);
}

static void check_asleep(const struct subject *subject)
{
	pthread_t threads[WAITERS];
	uint64_t before = halts();

	watch(subject->name);
	acquired = 0;
	subject->lock();
	for (int i = 0; i < WAITERS; i++)
		thread_start(&threads[i], 0, contend, (void *)subject);
	await_halts(before, WAITERS);
	CHECK(in_child(child, (void *)subject) == 0);
	subject->unlock();
	for (int i = 0; i < WAITERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(acquired == WAITERS * TURNS);
	check_free(subject);
}

static void *contend_on(void *arg)
{
	while (!atomic_load(&stop))
		contend(arg);
	return NULL;
}

/* Forks while the waiters are anywhere in the slow path. */
static void check_awake(const struct subject *subject)
{
	pthread_t threads[WAITERS];

	watch(subject->name);
	atomic_store(&stop, false);
	for (int i = 0; i < WAITERS; i++)
		thread_start(&threads[i], 0, contend_on, (void *)subject);
	for (int i = 0; i < FORKS; i++) {
		subject->lock();
		CHECK(in_child(child, (void *)subject) == 0);
		subject->unlock();
	}
	atomic_store(&stop, true);
	for (int i = 0; i < WAITERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	check_free(subject);
}

int main(void)
{
	lw_thread_attach();
	for (size_t i = 0; i < SUBJECTS; i++) {
		check_asleep(&subjects[i]);
		check_awake(&subjects[i]);
	}
	return 0;
}
