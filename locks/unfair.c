// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queued unfair lock: whoever runs takes it when it is free. Those who arrive may, and so may
 * waiters, the more often the nearer to the head; one that does so leaves the queue from where it
 * stands. So the lock is never idle for one that does not run, few compete for it at a time, and
 * the queue drains in order but for those.
 *
 * In a kernel it is for guests without paravirt locks: waiters spin. In user space they park
 * (tunable unfair_park), see halting.h.
 *
 * The queue head competes all the time it runs, and nobody starves: after it has halted, or looked
 * unfair_spin times, unfair_starvation_limit times in vain, it sets the pending bit, which forbids
 * stealing until it has had the lock.
 */
#include "halting.h"
#include "lock_type.h"
#include "unfair.h"

static lw_always_inline struct lw_halting lw_unfair_how(void)
{
	return (struct lw_halting){
		.steal = true,
		.steal_queued = true,
		.halt = lw_tunable(unfair_park),
		.kick_at_unlock = true,
		.latencies = lw_tunable(pv_latencies),
		.linger = (uint32_t)lw_tunable(unfair_arrival_spin),
		.spin = (uint32_t)lw_tunable(unfair_spin),
		.claim = (uint32_t)lw_tunable(unfair_starvation_limit),
	};
}

static lw_always_inline enum lw_queue_end lw_unfair_queue(union lw_word *lock, uint32_t tail,
							  struct lw_node *node,
							  const struct lw_wait_limit *limit)
{
	return lw_halting_queue(lock, tail, node, limit, lw_unfair_how());
}

static lw_always_inline bool lw_unfair_nodeless(union lw_word *lock,
						const struct lw_wait_limit *limit)
{
	return lw_halting_nodeless(lock, limit, lw_unfair_how());
}

bool lw_unfair_lock_limited(struct lw_unfair *lock, const struct lw_wait_limit *limit)
{
	return lw_halting_arrive(&lock->word, lw_unfair_how()) ||
	       lw_queued_wait(&lock->word, limit, lw_unfair_queue, lw_unfair_nodeless);
}

void lw_unfair_lock_slow(struct lw_unfair *lock)
{
	lw_unfair_lock_limited(lock, NULL);
}

void lw_unfair_unlock_slow(struct lw_unfair *lock)
{
	lw_halting_unlock_slow(&lock->word, lw_unfair_how());
}

LW_DESCRIBE_LIMITED(unfair, struct lw_unfair,
		    .summary = "queued unfair lock: arrivals and waiters may steal",
		    .traits = LW_TAIL_WORD,
		    .origin = "Long, queued unfair lock, pvqspinlock series of 2014 and 2015");
