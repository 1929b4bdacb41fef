// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Condition variables: wake-ups, cancellation, destruction, every type of mutex, many threads. */
#include "test.h"

/* A queue with one mutex and one condition variable, as programs have. */

struct stage {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned int waiting, woken, tokens;
	bool taken; /* by the thread that was to be cancelled */
};

#define STAGE                                                                        \
	{                                                                            \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER \
	}

static void *take_token(void *arg)
{
	struct stage *stage = arg;

	CHECK(pthread_mutex_lock(&stage->mutex) == 0);
	stage->waiting++;
	while (!stage->tokens)
		CHECK(pthread_cond_wait(&stage->cond, &stage->mutex) == 0);
	stage->tokens--;
	stage->woken++;
	CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
	return NULL;
}

/* Waits until that many threads wait: each releases the mutex only when it begins to wait. */
static void await_waiting(struct stage *stage, unsigned int waiting)
{
	for (;;) {
		bool enough;

		CHECK(pthread_mutex_lock(&stage->mutex) == 0);
		enough = stage->waiting == waiting;
		CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
		if (enough)
			return;
		usleep(200);
	}
}

static unsigned int woken(struct stage *stage)
{
	unsigned int woken;

	CHECK(pthread_mutex_lock(&stage->mutex) == 0);
	woken = stage->woken;
	CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
	return woken;
}

static void give(struct stage *stage, unsigned int tokens)
{
	CHECK(pthread_mutex_lock(&stage->mutex) == 0);
	stage->tokens += tokens;
	CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
}

#define WAITERS 8

static void check_signal_and_broadcast(void)
{
	struct stage stage = STAGE;
	pthread_t threads[WAITERS];

	/* Without a waiter it has no effect. */
	GIVES(0, pthread_cond_signal(&stage.cond));
	GIVES(0, pthread_cond_broadcast(&stage.cond));
	for (int i = 0; i < WAITERS; i++)
		threads[i] = start(take_token, &stage);
	await_waiting(&stage, WAITERS);
	for (unsigned int i = 1; i <= 3; i++) {
		give(&stage, 1);
		GIVES(0, pthread_cond_signal(&stage.cond));
		while (woken(&stage) != i)
			usleep(200);
	}
	give(&stage, WAITERS - 3);
	GIVES(0, pthread_cond_broadcast(&stage.cond));
	for (int i = 0; i < WAITERS; i++)
		join(threads[i]);
	CHECK(stage.woken == WAITERS);
	GIVES(0, pthread_cond_destroy(&stage.cond));
}

/*
 * Threads that take turns: each signals the next, and then waits. The mutex is released by an
 * unlock or by the wait; some waits have a short deadline.
 */

#define SEATS 4
#define TURNS repetitions(20000)

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t next[SEATS];
	bool recursive;
	unsigned int turn; /* the mutex protects it */
} table;

static void await_turn(unsigned int seat)
{
	while (table.turn % SEATS != seat && table.turn < TURNS) {
		struct timespec soon = from_now(CLOCK_REALTIME, 0);
		int error = 0;

		if (table.turn % 512 == 3)
			error = pthread_cond_timedwait(&table.next[seat], &table.mutex, &soon);
		else
			error = pthread_cond_wait(&table.next[seat], &table.mutex);
		CHECK(error == 0 || error == ETIMEDOUT);
	}
}

static void *take_turns(void *arg)
{
	unsigned int seat = (unsigned int)(uintptr_t)arg;

	CHECK(pthread_mutex_lock(&table.mutex) == 0);
	for (;;) {
		bool again;

		await_turn(seat);
		if (table.turn >= TURNS)
			break;
		again = table.recursive && table.turn % 7 == 0;
		if (again)
			CHECK(pthread_mutex_lock(&table.mutex) == 0);
		table.turn++;
		/* The second signal finds no waiter, or one whose turn it is not. */
		CHECK(pthread_cond_signal(&table.next[(seat + 1) % SEATS]) == 0);
		if (table.turn % 5 == 0)
			CHECK(pthread_cond_signal(&table.next[(seat + 2) % SEATS]) == 0);
		if (again)
			CHECK(pthread_mutex_unlock(&table.mutex) == 0);
		if (table.turn % 3 == 0) {
			CHECK(pthread_mutex_unlock(&table.mutex) == 0);
			CHECK(pthread_mutex_lock(&table.mutex) == 0);
		}
	}
	for (int i = 0; i < SEATS; i++)
		CHECK(pthread_cond_signal(&table.next[i]) == 0);
	CHECK(pthread_mutex_unlock(&table.mutex) == 0);
	return NULL;
}

static void check_turns(int type)
{
	pthread_t threads[SEATS];

	table.mutex = typed_mutex(type);
	table.recursive = type == PTHREAD_MUTEX_RECURSIVE;
	table.turn = 0;
	for (int i = 0; i < SEATS; i++)
		CHECK(pthread_cond_init(&table.next[i], NULL) == 0);
	for (uintptr_t i = 0; i < SEATS; i++)
		threads[i] = start(take_turns, (void *)i);
	for (int i = 0; i < SEATS; i++)
		join(threads[i]);
	CHECK(table.turn == TURNS);
	for (int i = 0; i < SEATS; i++)
		GIVES(0, pthread_cond_destroy(&table.next[i]));
	GIVES(0, pthread_mutex_destroy(&table.mutex));
}

/*
 * A thread signals the waiter of a condition variable, and destroys it, before it releases the
 * mutex. Then it waits, so that it takes turns with the waiter.
 */

#define DESTROYED 100

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t waits, once;
	bool waiting, signalled;
} destroyed = {.mutex = PTHREAD_MUTEX_INITIALIZER, .waits = PTHREAD_COND_INITIALIZER};

static void *wait_for_each(void *arg)
{
	CHECK(pthread_mutex_lock(&destroyed.mutex) == 0);
	for (int i = 0; i < DESTROYED; i++) {
		CHECK(pthread_cond_init(&destroyed.once, NULL) == 0);
		destroyed.signalled = false;
		destroyed.waiting = true;
		CHECK(pthread_cond_signal(&destroyed.waits) == 0);
		while (!destroyed.signalled)
			CHECK(pthread_cond_wait(&destroyed.once, &destroyed.mutex) == 0);
	}
	CHECK(pthread_mutex_unlock(&destroyed.mutex) == 0);
	return arg;
}

static void check_destroyed_while_held(void)
{
	pthread_t thread;

	CHECK(pthread_mutex_lock(&destroyed.mutex) == 0);
	thread = start(wait_for_each, NULL);
	for (int i = 0; i < DESTROYED; i++) {
		while (!destroyed.waiting)
			CHECK(pthread_cond_wait(&destroyed.waits, &destroyed.mutex) == 0);
		destroyed.waiting = false;
		destroyed.signalled = true;
		GIVES(0, pthread_cond_signal(&destroyed.once));
		GIVES(0, pthread_cond_destroy(&destroyed.once));
	}
	CHECK(pthread_mutex_unlock(&destroyed.mutex) == 0);
	join(thread);
}

/* A mutex that a waiter will acquire again cannot be destroyed. */
static void check_destroy_mutex(int type)
{
	struct stage stage = {.mutex = typed_mutex(type), .cond = PTHREAD_COND_INITIALIZER};
	pthread_t threads[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		threads[i] = start(take_token, &stage);
	await_waiting(&stage, WAITERS);
	GIVES(EBUSY, pthread_mutex_destroy(&stage.mutex));
	give(&stage, WAITERS);
	GIVES(0, pthread_cond_broadcast(&stage.cond));
	for (int i = 0; i < WAITERS; i++)
		join(threads[i]);
	GIVES(0, pthread_mutex_destroy(&stage.mutex));
}

/* Cancellation */

static void unlock_held(void *mutex)
{
	CHECK(!is_free(mutex));
	CHECK(pthread_mutex_unlock(mutex) == 0);
}

static void *be_cancelled(void *arg)
{
	struct stage *stage = arg;

	CHECK(pthread_mutex_lock(&stage->mutex) == 0);
	stage->waiting++;
	/* The first of the program's own handlers: the mutex is held again when they run. */
	pthread_cleanup_push(unlock_held, &stage->mutex);
	for (;;)
		CHECK(pthread_cond_wait(&stage->cond, &stage->mutex) == 0);
	pthread_cleanup_pop(1);
	return NULL;
}

static void check_cancelled(int type)
{
	struct stage stage = {.mutex = typed_mutex(type), .cond = PTHREAD_COND_INITIALIZER};
	pthread_t thread;

	thread = start(be_cancelled, &stage);
	await_waiting(&stage, 1);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK(is_free(&stage.mutex));

	/* Cancelled before it waits. */
	CHECK(pthread_mutex_lock(&stage.mutex) == 0);
	thread = start(be_cancelled, &stage);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_mutex_unlock(&stage.mutex) == 0);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK(is_free(&stage.mutex));

	/* No waiter remains in the queue. */
	GIVES(0, pthread_cond_signal(&stage.cond));
	GIVES(0, pthread_cond_broadcast(&stage.cond));
	GIVES(0, pthread_cond_destroy(&stage.cond));
	GIVES(0, pthread_mutex_destroy(&stage.mutex));
}

static void *not_be_cancelled(void *arg)
{
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
	return take_token(arg);
}

static void check_cancellation_disabled(void)
{
	struct stage stage = STAGE;
	pthread_t thread = start(not_be_cancelled, &stage);

	await_waiting(&stage, 1);
	CHECK(pthread_cancel(thread) == 0);
	usleep(10000);
	CHECK(woken(&stage) == 0);
	give(&stage, 1);
	GIVES(0, pthread_cond_signal(&stage.cond));
	CHECK(join(thread) == NULL);
}

/*
 * Two threads wait. One is cancelled while a signal is sent: the cancellation must not consume the
 * signal. The other thread must get its token.
 */
static void unlock(void *mutex)
{
	CHECK(pthread_mutex_unlock(mutex) == 0);
}

static void *take_or_leave(void *arg)
{
	struct stage *stage = arg;

	CHECK(pthread_mutex_lock(&stage->mutex) == 0);
	pthread_cleanup_push(unlock, &stage->mutex);
	stage->waiting++;
	while (!stage->tokens)
		CHECK(pthread_cond_wait(&stage->cond, &stage->mutex) == 0);
	stage->tokens--;
	stage->taken = true;
	pthread_cleanup_pop(1);
	return NULL;
}

#define CANCELLATIONS repetitions(3000)

static void check_signal_not_swallowed(void)
{
	for (unsigned int i = 0; i < CANCELLATIONS; i++) {
		struct stage stage = STAGE;
		pthread_t cancelled = start(take_or_leave, &stage), other;

		await_waiting(&stage, 1);
		other = start(take_token, &stage);
		await_waiting(&stage, 2);
		stage.tokens = 1;
		if (i % 2) {
			GIVES(0, pthread_cond_signal(&stage.cond));
			CHECK(pthread_cancel(cancelled) == 0);
		} else {
			CHECK(pthread_cancel(cancelled) == 0);
			GIVES(0, pthread_cond_signal(&stage.cond));
		}
		join(cancelled);
		if (stage.taken) {
			/* The other thread needs a token as well. */
			give(&stage, 1);
			GIVES(0, pthread_cond_signal(&stage.cond));
		}
		join(other);
		CHECK(stage.tokens == 0 && is_free(&stage.mutex));
	}
}

/* Destroys it when all threads have been woken, but not all have returned. */

struct waiter {
	struct stage *stage;
	pthread_cond_t *cond;
};

static void *wait_on(void *arg)
{
	struct waiter *waiter = arg;

	CHECK(pthread_mutex_lock(&waiter->stage->mutex) == 0);
	waiter->stage->waiting++;
	while (!waiter->stage->tokens)
		CHECK(pthread_cond_wait(waiter->cond, &waiter->stage->mutex) == 0);
	CHECK(pthread_mutex_unlock(&waiter->stage->mutex) == 0);
	return NULL;
}

static void check_destroy_after_broadcast(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < 300; i++) {
		struct stage stage = STAGE;
		pthread_t threads[WAITERS];
		pthread_cond_t *cond = mmap(NULL, page, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct waiter waiter = {&stage, cond};

		CHECK(cond != MAP_FAILED);
		CHECK(pthread_cond_init(cond, NULL) == 0);
		for (int j = 0; j < WAITERS; j++)
			threads[j] = start(wait_on, &waiter);
		await_waiting(&stage, WAITERS);
		give(&stage, 1);
		GIVES(0, pthread_cond_broadcast(cond));
		GIVES(0, pthread_cond_destroy(cond));
		CHECK(munmap(cond, page) == 0);
		for (int j = 0; j < WAITERS; j++)
			join(threads[j]);
	}
}

/* The mutex */

static void *lock_and_signal(void *arg)
{
	struct stage *stage = arg;

	CHECK(pthread_mutex_lock(&stage->mutex) == 0);
	stage->tokens = 1;
	CHECK(pthread_cond_signal(&stage->cond) == 0);
	CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
	return NULL;
}

/* glibc releases a recursive mutex once only, as POSIX warns. We release it wholly. */
static void check_types(int type, int times)
{
	struct stage stage = {.mutex = typed_mutex(type), .cond = PTHREAD_COND_INITIALIZER};
	pthread_t thread;

	for (int i = 0; i < times; i++)
		CHECK(pthread_mutex_lock(&stage.mutex) == 0);
	thread = start(lock_and_signal, &stage);
	while (!stage.tokens)
		GIVES(0, pthread_cond_wait(&stage.cond, &stage.mutex));
	for (int i = 0; i < times; i++) {
		CHECK(!is_free(&stage.mutex));
		GIVES(0, pthread_mutex_unlock(&stage.mutex));
	}
	CHECK(is_free(&stage.mutex));
	join(thread);
	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
		GIVES(EPERM, pthread_cond_wait(&stage.cond, &stage.mutex));
	GIVES(0, pthread_mutex_destroy(&stage.mutex));
}

/* A wait that is refused does not change the holder of the mutex. */
#define REFUSED repetitions(50000)

static void *wait_in_vain(void *arg)
{
	struct stage *stage = arg;

	for (unsigned int i = 0; i < REFUSED; i++) {
		CHECK(pthread_cond_wait(&stage->cond, &stage->mutex) == EPERM);
		CHECK(pthread_cond_wait(&stage->cond, &stage->mutex) == EPERM);
	}
	return NULL;
}

static void *hold_at_two_places(void *arg)
{
	struct stage *stage = arg;

	for (unsigned int i = 0; i < REFUSED; i++) {
		CHECK(pthread_mutex_lock(&stage->mutex) == 0);
		CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
		CHECK(pthread_mutex_lock(&stage->mutex) == 0);
		CHECK(pthread_mutex_unlock(&stage->mutex) == 0);
	}
	return NULL;
}

static void check_refused(void)
{
	pthread_t threads[4];

	for (int round = 0; round < 4; round++) {
		struct stage stage = {.mutex = typed_mutex(PTHREAD_MUTEX_ERRORCHECK),
				      .cond = PTHREAD_COND_INITIALIZER};

		for (int i = 0; i < 4; i++)
			threads[i] = start(i % 2 ? wait_in_vain : hold_at_two_places, &stage);
		for (int i = 0; i < 4; i++)
			join(threads[i]);
	}
}

int main(void)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};

	begin();
	check_signal_and_broadcast();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		check_types(types[i], 1);
		check_destroy_mutex(types[i]);
		check_turns(types[i]);
		check_cancelled(types[i]);
	}
	check_destroyed_while_held();
	if (expected_lock())
		check_types(PTHREAD_MUTEX_RECURSIVE, 3);
	check_cancellation_disabled();
	check_signal_not_swallowed();
	check_refused();
	check_destroy_after_broadcast();
	return 0;
}
