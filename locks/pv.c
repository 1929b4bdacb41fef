// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The paravirt queued spinlock: a queue whose waiters halt, see halting.h.
 *
 * pv42 is that of Linux 4.2. Strictly FIFO, so the lock stands still while the next in line
 * wakes up; and a waiter that has halted is kicked twice, when it becomes queue head and, if it
 * has halted again, to get the lock.
 *
 * pv has the improvements that were proposed for it in 2014 and 2015, each with a switch (tunables
 * pv_...): the kick only at unlock, kicking ahead (off unless asked for), waiting early, the
 * pending bit, and stealing: whoever runs takes a free lock rather than to leave it to one who has
 * yet to wake up, until the queue head has halted pv_starvation_limit times in vain. Then it sets
 * the pending bit, and nobody who sees it goes first but one who waited with that bit already.
 */
#include "halting.h"
#include "lock_type.h"
#include "pv.h"

static lw_always_inline struct lw_halting lw_pv_how(void)
{
	return (struct lw_halting){
		.steal = lw_tunable(pv_steal),
		.pending = lw_tunable(pv_pending),
		.halt = true,
		.kick_at_unlock = lw_tunable(pv_kick_at_unlock),
		.wait_early = lw_tunable(pv_wait_early),
		.latencies = lw_tunable(pv_latencies),
		.kick_ahead = (uint32_t)lw_tunable(pv_kick_ahead),
		.linger = lw_tunable(pv_steal) ? (uint32_t)lw_tunable(pv_arrival_spin) : 0,
		.spin = (uint32_t)lw_tunable(pv_spin),
		.claim = lw_tunable(pv_steal) ? (uint32_t)lw_tunable(pv_starvation_limit) : 0,
	};
}

static lw_always_inline enum lw_queue_end lw_pv_queue(union lw_word *lock, uint32_t tail,
						      struct lw_node *node,
						      const struct lw_wait_limit *limit)
{
	return lw_halting_queue(lock, tail, node, limit, lw_pv_how());
}

static lw_always_inline bool lw_pv_nodeless(union lw_word *lock, const struct lw_wait_limit *limit)
{
	return lw_halting_nodeless(lock, limit, lw_pv_how());
}

bool lw_pv_lock_limited(struct lw_pv *lock, const struct lw_wait_limit *limit)
{
	return lw_halting_arrive(&lock->word, lw_pv_how()) ||
	       lw_queued_wait(&lock->word, limit, lw_pv_queue, lw_pv_nodeless);
}

void lw_pv_lock_slow(struct lw_pv *lock)
{
	lw_pv_lock_limited(lock, NULL);
}

void lw_pv_unlock_slow(struct lw_pv *lock)
{
	lw_halting_unlock_slow(&lock->word, lw_pv_how());
}

static lw_always_inline struct lw_halting lw_pv42_how(void)
{
	return (struct lw_halting){
		.halt = true,
		.latencies = lw_tunable(pv_latencies),
		.spin = (uint32_t)lw_tunable(pv42_spin),
		.claim = LW_NEVER_CLAIM,
	};
}

static lw_always_inline enum lw_queue_end lw_pv42_queue(union lw_word *lock, uint32_t tail,
							struct lw_node *node,
							const struct lw_wait_limit *limit)
{
	return lw_halting_queue(lock, tail, node, limit, lw_pv42_how());
}

void lw_pv42_lock_slow(struct lw_pv42 *lock)
{
	lw_queued_wait(&lock->word, NULL, lw_pv42_queue, lw_queued_spin_nodeless);
}

void lw_pv42_unlock_slow(struct lw_pv42 *lock)
{
	lw_halting_unlock_slow(&lock->word, lw_pv42_how());
}

LW_DESCRIBE(pv42, struct lw_pv42, .summary = "paravirt queued spinlock as it was in Linux 4.2",
	    .traits = LW_FIFO | LW_TAIL_WORD, .origin = "Long and Zijlstra, Linux 4.2");

LW_DESCRIBE_LIMITED(pv, struct lw_pv,
		    .summary = "paravirt queued spinlock: waiters halt, arrivals may steal",
		    .traits = LW_TAIL_WORD,
		    .origin = "Long, pvqspinlock enhancements of 2014 and 2015");
