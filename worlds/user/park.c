// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Parking on private futexes, and wait limits.
 *
 * A waiter that cannot be cancelled parks on the word that the lock passes. A waiter that can be
 * cancelled parks on the wake counter of its slot instead: only lock code may change the word, but
 * any thread may increment the counter. Threads that change the word, and threads that cancel, both
 * increment it. Wake counters are in static memory, so a late increment never writes to freed
 * memory. A waiter that it wakes for no reason polls its word once more.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "park.h"
#include "lock_word.h"
#include "slots.h"
#include "surroundings.h"

struct lw_wake_counter {
	lw_atomic(uint32_t) wakes;
	lw_atomic(bool) parked; /* the slot's thread is parked on it, or about to be */
};

static struct lw_wake_counter lw_wake_counters[LW_MAX_SLOTS + 1];

/* Parking */

/* Returns 0 or an error number. Keeps errno, which a signal handler must not change. */
static int lw_futex(const uint32_t *word, int op, uint32_t value, const struct timespec *until)
{
	int saved = errno, error = 0;

	if (syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
		    FUTEX_BITSET_MATCH_ANY) < 0)
		error = errno;
	errno = saved;
	return error;
}

/* A clock that the kernel does not know is looked at again after this time. */
#define LW_OWN_CLOCK_NS 10000000

/*
 * Does the program see this clock as the kernel does? Not under libfaketime and its like. Yes,
 * where the system call is forbidden. No, if we lose the CPU in between: then the park ends early.
 */
static bool lw_clock_is_kernels(clockid_t clock)
{
	const int64_t slack = 1000000, seen = (int64_t)lw_user_nanoseconds(clock);
	struct timespec now;
	int saved = errno;
	bool known = syscall(SYS_clock_gettime, clock, &now) == 0;

	errno = saved;
	return !known || llabs((int64_t)now.tv_sec * 1000000000 + now.tv_nsec - seen) <= slack;
}

/*
 * Parks until woken or until the time `until` of `clock`. Returns true if that time came. It may
 * return early: after a signal (EINTR), because the value has changed (EAGAIN), or because the
 * clock is not the kernel's. The operation is FUTEX_WAIT_BITSET because FUTEX_WAIT takes a length
 * of time, not a time.
 */
static bool lw_futex_wait(const uint32_t *word, uint32_t value, const struct timespec *until,
			  clockid_t clock)
{
	const struct timespec length = {0, LW_OWN_CLOCK_NS};
	int op = FUTEX_WAIT_BITSET | (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);

	if (!until || lw_clock_is_kernels(clock))
		return lw_futex(word, op, value, until) == ETIMEDOUT;
	lw_futex(word, FUTEX_WAIT, value, &length);
	return false;
}

static void lw_wake_slot(uint32_t slot)
{
	/* release: the waiter that sees this wake also sees why it was woken */
	lw_fetch_add(&lw_wake_counters[slot].wakes, 1, release);
	lw_futex(&lw_wake_counters[slot].wakes.lw_raw, FUTEX_WAKE, 1, NULL);
}

static bool lw_park_cancellable(const uint32_t *word, uint32_t value,
				const struct lw_wait_limit *limit)
{
	struct lw_wake_counter *counter = &lw_wake_counters[lw_user_thread.slot];
	struct lw_cancel *cancel = limit->cancel;
	bool timed_out = false;
	uint32_t wakes;

	lw_store(&counter->parked, true, relaxed);
	lw_store(&cancel->slot, lw_user_thread.slot, relaxed);
	/*
	 * Pairs with the fences of lw_user_unpark() and lw_user_cancel(): either we see the
	 * changed word or the cancellation here, or they see `parked` or `slot` and wake us.
	 */
	lw_fence(seq_cst);
	wakes = lw_load(&counter->wakes, acquire);
	if (__atomic_load_n(word, __ATOMIC_RELAXED) == value &&
	    !lw_load(&cancel->cancelled, relaxed))
		timed_out =
			lw_futex_wait(&counter->wakes.lw_raw, wakes, limit->deadline, limit->clock);
	lw_store(&cancel->slot, 0, relaxed);
	lw_store(&counter->parked, false, relaxed);
	return timed_out;
}

bool lw_user_park(const uint32_t *word, uint32_t value, const struct lw_wait_limit *limit)
{
	if (limit && limit->cancel)
		return lw_park_cancellable(word, value, limit);
	if (!limit)
		return lw_futex_wait(word, value, NULL, CLOCK_MONOTONIC);
	return lw_futex_wait(word, value, limit->deadline, limit->clock);
}

/* The nth bounded park takes LW_PARK_NS << n nanoseconds; n counts up to LW_PARK_DOUBLINGS. */
#define LW_PARK_NS	  1000000ull
#define LW_PARK_DOUBLINGS 20
/* Parks are shorter with a deadline by a clock that may be set forward past it meanwhile. */
#define LW_PARK_DOUBLINGS_REALTIME 8

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
	return lw_timespec(lw_user_nanoseconds(clock) + ns);
}

bool lw_user_park_bounded(const uint32_t *word, uint32_t value, const struct lw_wait_limit *limit,
			  uint32_t nth)
{
	const uint32_t most = limit && limit->clock == CLOCK_REALTIME ? LW_PARK_DOUBLINGS_REALTIME
								      : LW_PARK_DOUBLINGS;
	uint64_t length = LW_PARK_NS << (nth < most ? nth : most);
	struct timespec until = lw_timespec(length);

	/* FUTEX_WAIT takes a length of time, so this needs no system call but futex. */
	if (!limit)
		return lw_futex(word, FUTEX_WAIT, value, &until) == ETIMEDOUT;
	until = lw_from_now(length, limit->clock);
	if (limit->deadline && lw_is_before(limit->deadline, &until))
		return lw_user_park(word, value, limit);
	/* The bound is by CLOCK_MONOTONIC, which cannot be set back. */
	until = lw_from_now(length, CLOCK_MONOTONIC);
	return lw_user_park(word, value,
			    &(struct lw_wait_limit){&until, limit->cancel, CLOCK_MONOTONIC});
}

void lw_user_unpark(const uint32_t *word, uint32_t slot)
{
	/* Pairs with lw_park_cancellable(). */
	lw_fence(seq_cst);
	if (lw_load(&lw_wake_counters[slot].parked, relaxed))
		lw_wake_slot(slot);
	/*
	 * Wake the word in any case: a signal handler may have interrupted the thread that is
	 * parked on the counter, and be parked on the word itself.
	 */
	lw_futex(word, FUTEX_WAKE, 1, NULL);
}

#define LW_PAUSE_LONG_NS 50000u

static void lw_sleep(uint64_t ns)
{
	const struct timespec length = lw_timespec(ns);
	const uint32_t word = 0;

	lw_futex(&word, FUTEX_WAIT, 0, &length);
}

void lw_user_pause_long(void)
{
	lw_sleep(LW_PAUSE_LONG_NS);
}

struct lw_user_pausing lw_user_pausing;

/*
 * However many threads wait without a slot, only one polls each 50 microseconds. Otherwise they
 * would take the CPUs from the threads that they wait for.
 */
void lw_user_pause_in_turn(void)
{
	const int32_t others = lw_fetch_add(&lw_user_pausing.threads, 1, relaxed);

	/* Negative: in the child of a fork, for a handler that forked during a pause. */
	lw_sleep((uint64_t)LW_PAUSE_LONG_NS * (others < 0 ? 1 : (uint32_t)others + 1));
	lw_fetch_add(&lw_user_pausing.threads, -1, relaxed);
}

/* Wait limits */

void lw_user_cancel(struct lw_cancel *cancel)
{
	uint32_t slot;

	/* release: the waiter that leaves for this sees what led to the cancellation */
	lw_store(&cancel->cancelled, true, release);
	/* Pairs with lw_park_cancellable(). */
	lw_fence(seq_cst);
	slot = lw_load(&cancel->slot, relaxed);
	if (slot)
		lw_wake_slot(slot);
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
