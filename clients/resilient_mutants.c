// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The mistakes of resilient_mutants.h, each in its own acquisition or release. This file is part of
 * the same translation unit as rqspinlock.c, whose functions it calls.
 */
#include "resilient_mutants.h"

#include "held_locks.h"
#include "lock_type.h"

/*
 * rq_late enters the lock in the table after it has acquired it on the fast path. An interruption
 * in between finds the lock held, but not in the table.
 */
static int rq_late_acquire(struct lw_rqspinlock *lock)
{
	struct lw_held *held = lw_rq_held();
	uint32_t val = 0;
	bool acquired = lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire);

	lw_held_add(held, lock);
	return acquired ? LW_RQ_ACQUIRED : lw_rq_slow(lock, held, val);
}

/*
 * rq_early removes the lock from the table before it releases it. An interruption in between finds
 * the lock held, but not in the table.
 */
static void rq_early_unlock(struct lw_rqspinlock *lock)
{
	lw_held_remove(lw_own_held(), lock);
	lw_word_unlock(&lock->word);
}

/*
 * rq_unasked does not look for an earlier entry before it waits behind a queue head. If it has
 * interrupted the holder, it waits, with the head, for the holder.
 */
static int rq_unasked_acquire(struct lw_rqspinlock *lock)
{
	struct lw_held *held = lw_rq_held();
	uint32_t val = 0;
	int result;

	lw_held_add(held, lock);
	if (lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire))
		return LW_RQ_ACQUIRED;
	if (!(val & LW_TAIL_MASK))
		return lw_rq_slow(lock, held, val);
	result = lw_rq_queue_or_spin(lock, held);
	if (result != LW_RQ_ACQUIRED)
		lw_held_remove(held, lock);
	return result;
}

/*
 * rq_twice waits without a queue node, and enters the lock again for that. The thread is told that
 * it has the lock already, and one of the two entries stays for ever.
 */
static int rq_twice_acquire(struct lw_rqspinlock *lock)
{
	struct lw_held *held = lw_rq_held();
	int result = LW_RQ_AA;
	uint32_t val = 0;

	lw_held_add(held, lock);
	if (lw_try_cmpxchg(&lock->word.val, &val, LW_LOCKED, acquire))
		return LW_RQ_ACQUIRED;
	lw_held_add(held, lock);
	if (!lw_held_before(held, lock))
		result = lw_rq_spin(lock, held);
	if (result != LW_RQ_ACQUIRED)
		lw_held_remove(held, lock);
	return result;
}

/* The type of a mutant. It is used through lw_resilient_locks[] only, but for its trylock. */
#define RQ_DESCRIBE(id, text)                                                                     \
	LW_DESCRIBE_OPS(id, struct lw_rqspinlock, lw_rqspinlock_lock(lock),                       \
			lw_rqspinlock_trylock(lock), lw_rqspinlock_unlock(lock), .summary = text, \
			.traits = LW_FIFO | LW_SPINS | LW_TAIL_WORD | LW_RESILIENT | LW_BROKEN,   \
			.origin = "a mistake in Linux' rqspinlock")

RQ_DESCRIBE(rq_late, "enters the lock after it has acquired it");
RQ_DESCRIBE(rq_early, "removes the entry before it releases the lock");
RQ_DESCRIBE(rq_unasked, "queues without a look for an earlier entry");
RQ_DESCRIBE(rq_twice, "enters the lock twice");

const struct lw_resilient_lock lw_resilient_locks[] = {
	{&lw_rqspinlock_type, lw_rqspinlock_acquire, lw_rqspinlock_unlock},
	{&lw_rq_late_type, rq_late_acquire, lw_rqspinlock_unlock},
	{&lw_rq_early_type, lw_rqspinlock_acquire, rq_early_unlock},
	{&lw_rq_unasked_type, rq_unasked_acquire, lw_rqspinlock_unlock},
	{&lw_rq_twice_type, rq_twice_acquire, lw_rqspinlock_unlock},
};

const struct lw_lock_type *const lw_resilient_mutant_types[] = {
	&lw_rq_late_type, &lw_rq_early_type, &lw_rq_unasked_type, &lw_rq_twice_type, NULL,
};
