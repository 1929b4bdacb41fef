// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Parking: private futexes. And what waits until a time.
 *
 * Who can be told to give up sleeps on the bell of its slot, not on the word, which is not
 * for those who cancel to change. Whoever changes the word or cancels rings. A bell is of
 * static memory and counts, so that one too late, or for another, is a look in vain.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lockworks/lockworks.h>

#include "lock_word.h"
#include "slots.h"

struct lw_bell {
	lw_atomic(uint32_t) rung; /* how often */
	lw_atomic(bool) heard;	  /* does the slot's thread sleep on it? */
};

static struct lw_bell lw_bells[LW_MAX_SLOTS + 1];

/* Locks are used where errno must not change, as in signal handlers. */
static int lw_futex(const uint32_t *word, int op, uint32_t value, const struct timespec *until)
{
	int saved = errno, error = 0;

	if (syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
		    FUTEX_BITSET_MATCH_ANY) < 0)
		error = errno;
	errno = saved;
	return error;
}

/*
 * Until woken, but perhaps not so long: a signal (EINTR), a value that has changed (EAGAIN) and
 * the time, then true, all look like it. FUTEX_WAIT would take a length of time, not a time.
 */
static bool lw_futex_wait(const uint32_t *word, uint32_t value, const struct timespec *until,
			  clockid_t clock)
{
	int op = FUTEX_WAIT_BITSET | (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);

	return lw_futex(word, op, value, until) == ETIMEDOUT;
}

static void lw_ring(uint32_t slot)
{
	/* release: for who looks at its word after it has seen this */
	lw_fetch_add(&lw_bells[slot].rung, 1, release);
	lw_futex(&lw_bells[slot].rung.lw_raw, FUTEX_WAKE, 1, NULL);
}

static bool lw_park_cancellable(const uint32_t *word, uint32_t value,
				const struct lw_wait_limit *limit)
{
	struct lw_bell *bell = &lw_bells[lw_user_thread.slot];
	struct lw_cancel *cancel = limit->cancel;
	bool timed_out = false;
	uint32_t rung;

	lw_store(&bell->heard, true, relaxed);
	lw_store(&cancel->slot, lw_user_thread.slot, relaxed);
	/* We see that the word has changed or that it is cancelled, or they see us here. */
	lw_fence(seq_cst);
	rung = lw_load(&bell->rung, acquire);
	if (__atomic_load_n(word, __ATOMIC_RELAXED) == value &&
	    !lw_load(&cancel->cancelled, relaxed))
		timed_out = lw_futex_wait(&bell->rung.lw_raw, rung, limit->deadline, limit->clock);
	lw_store(&cancel->slot, 0, relaxed);
	lw_store(&bell->heard, false, relaxed);
	return timed_out;
}

/* True if the time of `limit` has come. */
bool lw_user_park(const uint32_t *word, uint32_t value, const struct lw_wait_limit *limit)
{
	if (limit && limit->cancel)
		return lw_park_cancellable(word, value, limit);
	if (!limit)
		return lw_futex_wait(word, value, NULL, CLOCK_MONOTONIC);
	return lw_futex_wait(word, value, limit->deadline, limit->clock);
}

#define LW_NAP_NS  1000000ull
#define LW_NAP_MAX 20
/* With a deadline by a clock that may be set forward past it meanwhile */
#define LW_NAP_MAX_REALTIME 8

static struct timespec lw_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static bool lw_is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static struct timespec lw_from_now(uint64_t ns, clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return lw_timespec((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ns);
}

bool lw_user_park_bounded(const uint32_t *word, uint32_t value, const struct lw_wait_limit *limit,
			  uint32_t nth)
{
	const uint32_t most =
		limit && limit->clock == CLOCK_REALTIME ? LW_NAP_MAX_REALTIME : LW_NAP_MAX;
	uint64_t length = LW_NAP_NS << (nth < most ? nth : most);
	struct timespec until = lw_timespec(length);

	/* It takes a length of time, so that futex is all the system needs to allow. */
	if (!limit)
		return lw_futex(word, FUTEX_WAIT, value, &until) == ETIMEDOUT;
	until = lw_from_now(length, limit->clock);
	if (limit->deadline && lw_is_before(limit->deadline, &until))
		return lw_user_park(word, value, limit);
	/* By a clock that nobody sets back */
	until = lw_from_now(length, CLOCK_MONOTONIC);
	return lw_user_park(word, value,
			    &(struct lw_wait_limit){&until, limit->cancel, CLOCK_MONOTONIC});
}

#define LW_DOZE_NS 50000

void lw_user_pause_long(void)
{
	const struct timespec length = {0, LW_DOZE_NS};
	const uint32_t word = 0;

	lw_futex(&word, FUTEX_WAIT, 0, &length);
}

void lw_user_unpark(const uint32_t *word, uint32_t slot)
{
	/* as in lw_park_cancellable() */
	lw_fence(seq_cst);
	if (lw_load(&lw_bells[slot].heard, relaxed))
		lw_ring(slot);
	/* In any case, for a signal handler may sleep here that has interrupted who hears it. */
	lw_futex(word, FUTEX_WAKE, 1, NULL);
}

void lw_cancel(struct lw_cancel *cancel)
{
	uint32_t slot;

	/* release: what led to this is known to who gives up */
	lw_store(&cancel->cancelled, true, release);
	/* as in lw_park_cancellable() */
	lw_fence(seq_cst);
	slot = lw_load(&cancel->slot, relaxed);
	if (slot)
		lw_ring(slot);
}

bool lw_user_limit_passed(const struct lw_wait_limit *limit)
{
	const struct timespec *deadline = limit->deadline;
	struct timespec now;

	if (limit->cancel && lw_load(&limit->cancel->cancelled, acquire))
		return true;
	if (!deadline)
		return false;
	clock_gettime(limit->clock, &now);
	return !lw_is_before(&now, deadline);
}

bool lw_user_is_deadline(clockid_t clock, const struct timespec *deadline)
{
	return (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME) &&
	       (!deadline || (deadline->tv_nsec >= 0 && deadline->tv_nsec < 1000000000));
}

/* With the lock acquired if that needed no waiting, else as lock_limited() has it. */
#define LW_LOCK_UNTIL(id)                                                                      \
	int lw_##id##_lock_until(struct lw_##id *lock, clockid_t clock,                        \
				 const struct timespec *deadline, struct lw_cancel *cancel)    \
	{                                                                                      \
		const struct lw_wait_limit limit = {deadline, cancel, clock};                  \
                                                                                               \
		if (lw_##id##_trylock(lock))                                                   \
			return 0;                                                              \
		if (!lw_user_is_deadline(clock, deadline))                                     \
			return EINVAL;                                                         \
		if (lw_##id##_lock_limited(lock, &limit))                                      \
			return 0;                                                              \
		return cancel && lw_load(&cancel->cancelled, acquire) ? ECANCELED : ETIMEDOUT; \
	}

LW_LOCK_UNTIL(pv)
LW_LOCK_UNTIL(unfair)
LW_LOCK_UNTIL(mutex)

void lw_cond_wait(struct lw_cond *cond, struct lw_mutex *mutex)
{
	lw_cond_wait_until(cond, mutex, CLOCK_MONOTONIC, NULL);
}

int lw_cond_wait_until(struct lw_cond *cond, struct lw_mutex *mutex, clockid_t clock,
		       const struct timespec *deadline)
{
	const struct lw_wait_limit limit = {deadline, NULL, clock};
	struct lw_cond_waiter waiter;
	bool signalled;

	if (!lw_user_is_deadline(clock, deadline))
		return EINVAL;
	lw_cond_begin(cond, &waiter);
	lw_mutex_unlock(mutex);
	lw_cond_sleep(&waiter, &limit);
	signalled = lw_cond_end(cond, &waiter);
	lw_mutex_lock(mutex);
	return signalled ? 0 : ETIMEDOUT;
}
