// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_cond_*(): we serve a condition variable unless processes share it. We keep the member
 * __wrefs of glibc's layout. Its lowest bits say whether processes share the condition variable,
 * and which clock its deadlines use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "cond.h"
#include "glibc.h"
#include "mutex_parts.h"
#include "surroundings.h"

#define LW_COND_SHARED	  1u
#define LW_COND_MONOTONIC 2u
#define LW_COND_WAITERS	  3 /* glibc counts threads that wait from this bit on */
/* With a plan, we serve it. glibc would have this bit with 2^28 waiters. */
#define LW_COND_OURS 0x80000000u

struct lw_preload_cond {
	/* Low bits of `users`: threads that may still access it in a wait. From LW_FORK on:
	 * lw_forks. */
	struct lw_cond queue;
	/* The waiter that was signalled last, and that an unlock wakes. It may be gone. */
	lw_atomic(struct lw_cond_waiter *) late;
};

#define LW_FORK	 0x100000u
#define LW_USERS (LW_FORK - 1)

_Static_assert(sizeof(struct lw_preload_cond) <= offsetof(pthread_cond_t, __data.__wrefs),
	       "our members end before glibc's flags");

static unsigned int lw_cond_refs(const pthread_cond_t *cond)
{
	return __atomic_load_n(&cond->__data.__wrefs, __ATOMIC_RELAXED);
}

static bool lw_cond_is_shared(const pthread_cond_t *cond)
{
	return lw_cond_refs(cond) & LW_COND_SHARED;
}

/* The plan */

/*
 * With a plan, the mutex of the first wait decides. If we serve it, then we serve the condition
 * variable as well, with any mutex. If glibc serves it, then so it does the condition variable. A
 * later wait with a mutex of ours, which glibc could not unlock, then ends after a millisecond.
 */

/*
 * Returns whether glibc serves a condition variable with this member, or nobody has waited for it
 * yet.
 */
static bool lw_refs_are_glibcs(unsigned int refs)
{
	return refs & LW_COND_SHARED || (lw_has_plan() && !(refs & LW_COND_OURS));
}

/*
 * Returns whether glibc has to signal a condition variable with this member, which it serves. If
 * nobody has waited yet, it must not: a first wait may begin with us at any time.
 */
static bool lw_refs_have_waiters(unsigned int refs)
{
	return refs & LW_COND_SHARED || refs >> LW_COND_WAITERS;
}

/* Returns whether we serve the condition variable for a wait with a mutex of ours. */
static bool lw_cond_claim(pthread_cond_t *cond)
{
	unsigned int refs = lw_cond_refs(cond);
	/* Each wait in glibc changes the first member. */
	bool is_new = !(refs & ~LW_COND_MONOTONIC) &&
		      !__atomic_load_n((uint64_t *)(void *)cond, __ATOMIC_RELAXED);

	if (is_new && __atomic_compare_exchange_n(&cond->__data.__wrefs, &refs, refs | LW_COND_OURS,
						  false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return true;
	return !lw_refs_are_glibcs(refs);
}

/* Forks */

/*
 * The number of forks between the first process and this one, in units of LW_FORK. Threads that
 * waited before a fork are not in the child, and their queue nodes were on stacks that the child
 * may use for other threads. So the child discards a queue that was made before the fork.
 */
static uint32_t lw_forks;
static struct lw_mutex lw_renewing;

static void lw_cond_fork_child(void)
{
	lw_forks += LW_FORK;
	memset(&lw_renewing, 0, sizeof(lw_renewing));
}

__attribute__((constructor(101))) static void lw_cond_start(void)
{
	pthread_atfork(NULL, NULL, lw_cond_fork_child);
}

/* Returns whether a condition variable was last used before the fork. */
static bool lw_cond_is_from_before_fork(struct lw_preload_cond *cond)
{
	return (lw_load(&cond->queue.users, acquire) & ~LW_USERS) != lw_forks;
}

static struct lw_preload_cond *lw_cond_of(pthread_cond_t *arg)
{
	struct lw_preload_cond *cond = (struct lw_preload_cond *)arg;

	if (lw_unlikely(lw_cond_is_from_before_fork(cond))) {
		lw_mutex_lock(&lw_renewing);
		if (lw_cond_is_from_before_fork(cond)) {
			memset(&cond->queue, 0, sizeof(cond->queue));
			/* release: threads that see the new number see the empty queue */
			lw_store(&cond->queue.users, lw_forks, release);
		}
		lw_mutex_unlock(&lw_renewing);
	}
	return cond;
}

/* The mutex, ours or glibc's */

struct lw_cond_mutex {
	pthread_mutex_t *mutex;
	unsigned int count; /* how often it was acquired, if it is ours */
	int error;	    /* from unlocking or locking it */
};

static void lw_cond_mutex_unlock(void *arg)
{
	struct lw_cond_mutex *of = arg;

	if (lw_mutex_is_ours(of->mutex))
		of->count = lw_mutex_release_whole(of->mutex);
	else
		of->error = lw_glibc()->mutex_unlock(of->mutex);
}

static void lw_cond_mutex_lock(void *arg)
{
	struct lw_cond_mutex *of = arg;

	if (lw_mutex_is_ours(of->mutex))
		lw_mutex_take_whole(of->mutex, of->count);
	else if (!of->error)
		of->error = lw_glibc()->mutex_lock(of->mutex);
}

/* Waiting */

/*
 * Waits for a condition variable of glibc's with a mutex that we serve. glibc's wait could not
 * unlock that mutex. Any wait may end early, so this one ends after a millisecond.
 */
static int lw_preload_wait_briefly(struct lw_cond_mutex *of, const struct lw_wait_limit *limit)
{
	const struct timespec brief = {0, 1000000};

	lw_cond_mutex_unlock(of);
	pthread_cleanup_push(lw_cond_mutex_lock, of);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &brief, NULL);
	pthread_cleanup_pop(1);
	return lw_limit_reached(limit) ? ETIMEDOUT : 0;
}

struct lw_cond_wait {
	struct lw_preload_cond *cond;
	struct lw_cond_mutex *mutex;
	struct lw_cond_waiter waiter;
};

/*
 * A waiter that is woken by the holder of its mutex may take the holder's CPU, and has to give it
 * back. If the holder will wait next, as threads that take turns do, it is better woken when the
 * mutex is released. If the holder will go on, as the producer of a queue does, it is better woken
 * at once: then the holder goes on first, and the waiter finds more to do. So a thread remembers
 * what it did after it last woke a waiter at once, and does so in one of LW_TRIALS signals.
 *
 * Either is correct: a waiter is signalled when it leaves the queue, and it needs the mutex to go
 * on.
 */
#define LW_TRIALS 32

static __thread struct {
	bool woke;	    /* the last signal woke a waiter at once */
	bool takes_turns;   /* after such a signal, this thread has waited before the next */
	unsigned int later; /* waiters that were woken later */
} lw_signaller __attribute__((tls_model("initial-exec")));

static bool lw_wakes_later(void)
{
	return lw_signaller.takes_turns && ++lw_signaller.later % LW_TRIALS != 0;
}

/* Signals one waiter, if there is one. */
static void lw_preload_signal(struct lw_preload_cond *cond)
{
	struct lw_cond_waiter *waiter = lw_cond_take(&cond->queue);
	struct lw_cond_wait *wait;
	pthread_mutex_t *mutex;
	bool mine;

	if (!waiter)
		return;
	wait = (void *)((char *)waiter - offsetof(struct lw_cond_wait, waiter));
	mutex = wait->mutex->mutex;
	mine = lw_mutex_is_mine(mutex);
	if (mine && lw_wakes_later()) {
		lw_store(&cond->late, waiter, relaxed);
		if (!lw_cond_notify(waiter) || lw_mutex_wake_at_unlock(mutex, waiter))
			return;
	} else if (!lw_cond_notify(waiter)) {
		return;
	}
	lw_signaller.woke = mine;
	lw_cond_wake(waiter);
}

/*
 * Ends a wait's use of the condition variable. Called before the mutex is acquired, because its
 * holder may be about to destroy the condition variable.
 */
static void lw_cond_leave(struct lw_preload_cond *cond)
{
	/* release: our accesses precede its destruction */
	lw_fetch_add(&cond->queue.users, -1u, release);
}

/* Ends a wait whose thread was cancelled, or whose mutex this thread could not unlock. */
static void lw_cond_cancel(void *arg)
{
	struct lw_cond_wait *wait = arg;

	/* Forward a signal to a thread that will act on it. */
	if (lw_cond_end(&wait->cond->queue, &wait->waiter))
		lw_preload_signal(wait->cond);
	lw_cond_leave(wait->cond);
	lw_cond_mutex_lock(wait->mutex);
}

static int lw_preload_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				 const struct timespec *deadline)
{
	const struct lw_wait_limit limit = {deadline, NULL, clock};
	struct lw_cond_mutex of = {.mutex = mutex};
	struct lw_cond_wait wait = {.mutex = &of};
	bool signalled;
	int type;

	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	if (lw_mutex_is_ours(mutex) && !lw_mutex_is_held(mutex))
		return EPERM;
	if (!lw_cond_claim(cond))
		return lw_preload_wait_briefly(&of, &limit);
	if (lw_signaller.woke) {
		lw_signaller.woke = false;
		lw_signaller.takes_turns = true;
	}
	wait.cond = lw_cond_of(cond);
	lw_fetch_add(&wait.cond->queue.users, 1, relaxed);
	lw_cond_begin(&wait.cond->queue, &wait.waiter);
	lw_cond_mutex_unlock(&of);
	if (of.error) {
		lw_cond_cancel(&wait);
		return of.error;
	}
	pthread_cleanup_push(lw_cond_cancel, &wait);
	/* The thread may be cancelled at any point while it is parked: parking changes nothing. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	lw_cond_sleep(&wait.waiter, &limit);
	pthread_setcanceltype(type, NULL);
	pthread_cleanup_pop(0);
	signalled = lw_cond_end(&wait.cond->queue, &wait.waiter);
	lw_cond_leave(wait.cond);
	lw_cond_mutex_lock(&of);
	if (of.error)
		return of.error;
	return signalled ? 0 : ETIMEDOUT;
}

static bool lw_cond_is_for_glibc(const pthread_cond_t *cond, const pthread_mutex_t *mutex)
{
	return lw_refs_are_glibcs(lw_cond_refs(cond)) && !lw_mutex_is_ours(mutex);
}

static clockid_t lw_cond_clock(const pthread_cond_t *cond)
{
	return cond->__data.__wrefs & LW_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* The functions that programs call */

LW_EXPORT int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	if (attr) {
		int error = lw_glibc()->cond_init(cond, attr);

		if (error || lw_cond_is_shared(cond))
			return error;
	} else {
		memset(cond, 0, sizeof(*cond));
	}
	if (lw_has_plan())
		return 0;
	lw_store(&lw_cond_of(cond)->queue.users, lw_forks, relaxed);
	return 0;
}

LW_EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
	struct lw_cond_waiter *waiter;

	if (lw_refs_are_glibcs(lw_cond_refs(cond)))
		return lw_glibc()->cond_destroy(cond);
	waiter = lw_load(&lw_cond_of(cond)->late, relaxed);
	/* This thread may hold the mutex whose unlock would wake it. */
	if (waiter)
		lw_cond_wake(waiter);
	/* Threads that were signalled may not have returned yet. acquire: see lw_cond_leave() */
	lw_await_eq_soon(&lw_cond_of(cond)->queue.users, LW_USERS, 0, acquire);
	lw_cond_destroy(&lw_cond_of(cond)->queue);
	return 0;
}

LW_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (lw_cond_is_for_glibc(cond, mutex))
		return lw_glibc()->cond_wait(cond, mutex);
	return lw_preload_wait_until(cond, mutex, CLOCK_REALTIME, NULL);
}

LW_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				     const struct timespec *deadline)
{
	if (lw_cond_is_for_glibc(cond, mutex))
		return lw_glibc()->cond_timedwait(cond, mutex, deadline);
	return lw_preload_wait_until(cond, mutex, lw_cond_clock(cond), deadline);
}

LW_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				     const struct timespec *deadline)
{
	if (lw_cond_is_for_glibc(cond, mutex))
		return lw_glibc()->cond_clockwait(cond, mutex, clock, deadline);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	return lw_preload_wait_until(cond, mutex, clock, deadline);
}

LW_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	const unsigned int refs = lw_cond_refs(cond);

	if (lw_refs_are_glibcs(refs))
		return lw_refs_have_waiters(refs) ? lw_glibc()->cond_signal(cond) : 0;
	if (lw_signaller.woke)
		lw_signaller.woke = lw_signaller.takes_turns = false;
	if (lw_load(&lw_cond_of(cond)->queue.first, relaxed))
		lw_preload_signal(lw_cond_of(cond));
	return 0;
}

LW_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	const unsigned int refs = lw_cond_refs(cond);

	if (lw_refs_are_glibcs(refs))
		return lw_refs_have_waiters(refs) ? lw_glibc()->cond_broadcast(cond) : 0;
	lw_cond_broadcast(&lw_cond_of(cond)->queue);
	return 0;
}
