// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Who signals takes the first waiter out of the queue, or all of them, and then wakes them; from
 * then on they do not touch the condition variable, so that it may go. A waiter that gives up takes
 * itself out, unless it has been taken: then it waits for the word that is on its way.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cond_queue.h"
#include "surroundings.h"

enum lw_taken { LW_QUEUED, LW_SIGNALLED, LW_BROADCAST };

/* On the waiter's stack. */
struct lw_cond_waiter {
	struct lw_cond_waiter *prev, *next;
	enum lw_taken taken;	   /* protected by the lock of the condition variable */
	lw_atomic(uint32_t) woken; /* the last that others touch */
};

/* The queue */

/* Waiters of before a fork are not in the child, and their stacks may be those of others. */
static uint32_t lw_forks;

static void lw_cond_fork_child(void)
{
	lw_forks++;
}

__attribute__((constructor(101))) static void lw_cond_start(void)
{
	pthread_atfork(NULL, NULL, lw_cond_fork_child);
}

#define LW_FORKS_BUSY UINT32_MAX

static void lw_cond_renew(struct lw_cond *cond, uint32_t forks)
{
	if (forks != LW_FORKS_BUSY &&
	    lw_try_cmpxchg(&cond->forks, &forks, LW_FORKS_BUSY, relaxed)) {
		lw_store(&cond->lock.word.val, 0, relaxed);
		lw_store(&cond->first, NULL, relaxed);
		cond->last = NULL;
		/* release: that it is empty */
		lw_store(&cond->forks, lw_forks, release);
	}
	lw_await_ne_soon(&cond->forks, ~0u, LW_FORKS_BUSY, acquire);
}

static void lw_cond_lock_queue(struct lw_cond *cond)
{
	uint32_t forks = lw_load(&cond->forks, acquire);

	if (lw_unlikely(forks != lw_forks))
		lw_cond_renew(cond, forks);
	lw_pv_lock(&cond->lock);
}

static void lw_cond_enqueue(struct lw_cond *cond, struct lw_cond_waiter *waiter)
{
	lw_cond_lock_queue(cond);
	waiter->prev = cond->last;
	if (cond->last)
		cond->last->next = waiter;
	else
		lw_store(&cond->first, waiter, relaxed);
	cond->last = waiter;
	lw_pv_unlock(&cond->lock);
}

static void lw_cond_unlink(struct lw_cond *cond, struct lw_cond_waiter *waiter)
{
	if (waiter->prev)
		waiter->prev->next = waiter->next;
	else
		lw_store(&cond->first, waiter->next, relaxed);
	if (waiter->next)
		waiter->next->prev = waiter->prev;
	else
		cond->last = waiter->prev;
}

/* Leave the queue, or say by whom we have been taken out of it. */
static enum lw_taken lw_cond_leave(struct lw_cond *cond, struct lw_cond_waiter *waiter)
{
	enum lw_taken taken;

	/* Then it may be gone. */
	if (lw_load(&waiter->woken, acquire))
		return waiter->taken;
	lw_cond_lock_queue(cond);
	taken = waiter->taken;
	if (taken == LW_QUEUED)
		lw_cond_unlink(cond, waiter);
	lw_pv_unlock(&cond->lock);
	if (taken != LW_QUEUED)
		lw_await_ne_soon(&waiter->woken, ~0u, 0, acquire);
	return taken;
}

/* A waiter's part */

struct lw_cond_wait {
	struct lw_cond *cond;
	const struct lw_cond_lock *lock;
	struct lw_cond_waiter waiter;
};

/* Until woken, or the time. A cancellation point. */
static int lw_cond_sleep(const uint32_t *woken, clockid_t clock, const struct timespec *deadline)
{
	int op = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
	int saved = errno, error = 0, type;

	/* which the system takes for no time at all */
	if (deadline && deadline->tv_sec < 0)
		return ETIMEDOUT;
	if (clock == CLOCK_REALTIME)
		op |= FUTEX_CLOCK_REALTIME;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	if (syscall(SYS_futex, woken, op, 0, deadline, NULL, FUTEX_BITSET_MATCH_ANY) < 0)
		error = errno;
	pthread_setcanceltype(type, NULL);
	errno = saved;
	return error;
}

static void lw_cond_cancelled(void *arg)
{
	struct lw_cond_wait *wait = arg;

	/* A signal is not for us, who will not see to what it is about. */
	if (lw_cond_leave(wait->cond, &wait->waiter) == LW_SIGNALLED)
		lw_cond_signal(wait->cond);
	wait->lock->lock(wait->lock->of);
}

int lw_cond_wait_on(struct lw_cond *cond, const struct lw_cond_lock *lock, clockid_t clock,
		    const struct timespec *deadline)
{
	struct lw_cond_wait wait = {.cond = cond, .lock = lock};
	bool timed_out = false;

	lw_cond_enqueue(cond, &wait.waiter);
	lock->unlock(lock->of);
	pthread_cleanup_push(lw_cond_cancelled, &wait);
	while (!timed_out && !lw_load(&wait.waiter.woken, acquire))
		timed_out = lw_cond_sleep(&wait.waiter.woken.lw_raw, clock, deadline) == ETIMEDOUT;
	pthread_cleanup_pop(0);
	if (timed_out)
		timed_out = lw_cond_leave(cond, &wait.waiter) == LW_QUEUED;
	lock->lock(lock->of);
	return timed_out ? ETIMEDOUT : 0;
}

/* Who signals */

static void lw_cond_wake(struct lw_cond_waiter *waiter)
{
	const uint32_t *woken = &waiter->woken.lw_raw;
	int saved = errno;

	/* release: who wakes may leave, and what it is about to do with its stack comes after this
	 */
	lw_store(&waiter->woken, 1, release);
	syscall(SYS_futex, woken, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	errno = saved;
}

void lw_cond_signal(struct lw_cond *cond)
{
	struct lw_cond_waiter *waiter;

	/* Who has unlocked its lock to wait is seen by who has locked it since. */
	if (!lw_load(&cond->first, relaxed))
		return;
	lw_cond_lock_queue(cond);
	waiter = lw_load(&cond->first, relaxed);
	if (waiter) {
		lw_cond_unlink(cond, waiter);
		waiter->taken = LW_SIGNALLED;
	}
	lw_pv_unlock(&cond->lock);
	if (waiter)
		lw_cond_wake(waiter);
}

void lw_cond_broadcast(struct lw_cond *cond)
{
	struct lw_cond_waiter *waiter, *next;

	/* as in lw_cond_signal() */
	if (!lw_load(&cond->first, relaxed))
		return;
	lw_cond_lock_queue(cond);
	waiter = lw_load(&cond->first, relaxed);
	for (next = waiter; next; next = next->next)
		next->taken = LW_BROADCAST;
	lw_store(&cond->first, NULL, relaxed);
	cond->last = NULL;
	lw_pv_unlock(&cond->lock);
	for (; waiter; waiter = next) {
		next = waiter->next;
		lw_cond_wake(waiter);
	}
}
