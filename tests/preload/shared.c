// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Mutexes and condition variables that glibc serves: those shared between processes, robust ones,
 * and those with a protocol. They work across processes, and together with ours.
 */
#include "test.h"

/* glibc counts the holder of every mutex that it serves in __nusers; we do not. */
static bool is_served_by_glibc(pthread_mutex_t *mutex)
{
	return mutex->__data.__nusers == 1;
}

struct attributes {
	int type, shared, robust, protocol;
};

static pthread_mutex_t make(struct attributes with)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	CHECK(pthread_mutexattr_init(&attr) == 0);
	CHECK(pthread_mutexattr_settype(&attr, with.type) == 0);
	CHECK(pthread_mutexattr_setpshared(&attr, with.shared) == 0);
	CHECK(pthread_mutexattr_setrobust(&attr, with.robust) == 0);
	CHECK(pthread_mutexattr_setprotocol(&attr, with.protocol) == 0);
	CHECK(pthread_mutex_init(&mutex, &attr) == 0);
	CHECK(pthread_mutexattr_destroy(&attr) == 0);
	return mutex;
}

static void check_every_call(pthread_mutex_t *mutex)
{
	struct timespec past = {1, 0};

	GIVES(0, pthread_mutex_lock(mutex));
	CHECK(is_served_by_glibc(mutex));
	CHECK(elsewhere(pthread_mutex_trylock, mutex) == EBUSY);
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_trylock(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_timedlock(mutex, &past));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &past));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(0, pthread_mutex_destroy(mutex));
}

static void check_whose(void)
{
	static const struct attributes theirs[] = {
		{.shared = PTHREAD_PROCESS_SHARED},
		{.robust = PTHREAD_MUTEX_ROBUST},
		{.protocol = PTHREAD_PRIO_INHERIT},
		{.type = PTHREAD_MUTEX_RECURSIVE, .protocol = PTHREAD_PRIO_INHERIT},
		{.shared = PTHREAD_PROCESS_SHARED, .robust = PTHREAD_MUTEX_ROBUST},
	};
	pthread_mutex_t mutex;

	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		mutex = make(theirs[i]);
		check_every_call(&mutex);
	}
	mutex = make((struct attributes){0});
	GIVES(0, pthread_mutex_lock(&mutex));
	CHECK(is_served_by_glibc(&mutex) == !expected_lock());
	GIVES(0, pthread_mutex_unlock(&mutex));
}

/* Between processes */

#define ROUNDS 2000

struct between {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_spinlock_t spin;
	unsigned int turn, count; /* the mutex protects them */
	unsigned int spun;	  /* the spinlock protects it */
};

static void take_turns(struct between *between, unsigned int own)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(pthread_mutex_lock(&between->mutex) == 0);
		while (between->turn != own)
			CHECK(pthread_cond_wait(&between->cond, &between->mutex) == 0);
		between->turn = !own;
		between->count++;
		CHECK(pthread_cond_signal(&between->cond) == 0);
		CHECK(pthread_mutex_unlock(&between->mutex) == 0);
		CHECK(pthread_spin_lock(&between->spin) == 0);
		between->spun++;
		CHECK(pthread_spin_unlock(&between->spin) == 0);
	}
}

static void take_turns_there(void *arg)
{
	take_turns(arg, 1);
}

static void *fork_and_wait(void *arg)
{
	CHECK(in_child(take_turns_there, arg) == 0);
	return NULL;
}

static void check_between_processes(void)
{
	struct between *between = shared_memory(sizeof(*between));
	pthread_condattr_t attr;
	pthread_t thread;

	between->mutex = make((struct attributes){.shared = PTHREAD_PROCESS_SHARED});
	CHECK(pthread_condattr_init(&attr) == 0);
	CHECK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_cond_init(&between->cond, &attr) == 0);
	CHECK(pthread_spin_init(&between->spin, PTHREAD_PROCESS_SHARED) == 0);
	thread = start(fork_and_wait, between);
	take_turns(between, 0);
	join(thread);
	CHECK(between->count == 2 * ROUNDS && between->spun == 2 * ROUNDS);
	GIVES(0, pthread_cond_destroy(&between->cond));
	GIVES(0, pthread_mutex_destroy(&between->mutex));
}

static void die_with_it(void *mutex)
{
	CHECK(pthread_mutex_lock(mutex) == 0);
}

static void check_robust(void)
{
	pthread_mutex_t *mutex = shared_memory(sizeof(*mutex));
	struct timespec past = {1, 0};
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	*mutex = make((struct attributes){.shared = PTHREAD_PROCESS_SHARED,
					  .robust = PTHREAD_MUTEX_ROBUST});
	CHECK(in_child(die_with_it, mutex) == 0);
	GIVES(EOWNERDEAD, pthread_mutex_lock(mutex));
	GIVES(0, pthread_mutex_consistent(mutex));
	/* With a condition variable that we serve. */
	GIVES(ETIMEDOUT, pthread_cond_timedwait(&cond, mutex, &past));
	CHECK(is_served_by_glibc(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(EPERM, pthread_cond_wait(&cond, mutex));
	GIVES(0, pthread_cond_signal(&cond));
	CHECK(in_child(die_with_it, mutex) == 0);
	GIVES(EOWNERDEAD, pthread_mutex_trylock(mutex));
	GIVES(0, pthread_mutex_unlock(mutex));
	GIVES(ENOTRECOVERABLE, pthread_mutex_lock(mutex));
	GIVES(0, pthread_mutex_destroy(mutex));
}

/* Every kind of mutex with every kind of condition variable */

struct pair {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool there, done;
};

static void *wake(void *arg)
{
	struct pair *pair = arg;

	CHECK(pthread_mutex_lock(&pair->mutex) == 0);
	pair->done = true;
	CHECK(pthread_cond_signal(&pair->cond) == 0);
	CHECK(pthread_mutex_unlock(&pair->mutex) == 0);
	return NULL;
}

static void *wait_for_ever(void *arg)
{
	struct pair *pair = arg;

	CHECK(pthread_mutex_lock(&pair->mutex) == 0);
	pair->there = true;
	pthread_cleanup_push((void (*)(void *))(void *)pthread_mutex_unlock, &pair->mutex);
	for (;;)
		CHECK(pthread_cond_wait(&pair->cond, &pair->mutex) == 0);
	pthread_cleanup_pop(1);
	return NULL;
}

static void check_pair(struct attributes with, int shared)
{
	struct pair pair = {.mutex = make(with)};
	struct timespec soon;
	pthread_condattr_t attr;
	pthread_t thread;

	CHECK(pthread_condattr_init(&attr) == 0);
	CHECK(pthread_condattr_setpshared(&attr, shared) == 0);
	CHECK(pthread_cond_init(&pair.cond, &attr) == 0);

	CHECK(pthread_mutex_lock(&pair.mutex) == 0);
	soon = from_now(CLOCK_REALTIME, 5);
	while (pthread_cond_timedwait(&pair.cond, &pair.mutex, &soon) == 0)
		;
	CHECK(is_past(CLOCK_REALTIME, soon));
	thread = start(wake, &pair);
	while (!pair.done)
		GIVES(0, pthread_cond_wait(&pair.cond, &pair.mutex));
	CHECK(!is_free(&pair.mutex));
	GIVES(0, pthread_mutex_unlock(&pair.mutex));
	join(thread);

	thread = start(wait_for_ever, &pair);
	for (bool there = false; !there; usleep(200)) {
		CHECK(pthread_mutex_lock(&pair.mutex) == 0);
		there = pair.there;
		CHECK(pthread_mutex_unlock(&pair.mutex) == 0);
	}
	CHECK(pthread_cancel(thread) == 0);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK(is_free(&pair.mutex));
	GIVES(0, pthread_cond_destroy(&pair.cond));
	GIVES(0, pthread_mutex_destroy(&pair.mutex));
}

int main(void)
{
	static const struct attributes all[] = {
		{0},
		{.type = PTHREAD_MUTEX_RECURSIVE},
		{.shared = PTHREAD_PROCESS_SHARED},
		{.robust = PTHREAD_MUTEX_ROBUST},
		{.protocol = PTHREAD_PRIO_INHERIT},
	};

	begin();
	check_whose();
	check_between_processes();
	check_robust();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		check_pair(all[i], PTHREAD_PROCESS_PRIVATE);
		check_pair(all[i], PTHREAD_PROCESS_SHARED);
	}
	return 0;
}
