// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The paravirt queued spinlock: a queue whose waiters halt their virtual CPU (parking.h), and a
 * lock that arriving threads may steal (stealing.h).
 *
 *   free    (*,0,0) -- an arriving thread, or the queue head            --> held (*,0,1)
 *   held    (0,0,1) -- the first contender sets pending, then acquires   --> held (*,0,1)
 *   parked  (*,*,1) -- unlock: the queue head is kicked --> (*,*,2)      --> free (*,*,0)
 *   starved (*,1,0) -- only the queue head acquires                      --> held (*,0,1)
 *
 * The lock of Linux 4.2 is strictly FIFO, so it is idle while the next waiter wakes up, and a
 * waiter that has halted is kicked twice: to become queue head, and to acquire the lock. pv has the
 * improvements that were proposed for it in 2014 and 2015, each with a switch (tunables pv_...): a
 * single kick at the unlock, kicks ahead (off by default), early halts, the pending bit, and
 * stealing. An arriving thread steals a free lock, because a halted waiter takes long to wake up.
 * After pv_starvation_limit defeats the queue head sets the pending bit, which disables stealing.
 * Only a thread that already waited with the pending bit can then acquire the lock before it.
 *
 * Without pv_steal the head is starved from the start: whoever acquires the lock sets the bit for
 * the next head.
 *
 * Promises: mutual exclusion; no waiter is lost, and none starves; correct without a free queue
 * node.
 *
 * Orders: those of stealing.h. A thread acquires by a compare-and-swap, also the one with the
 * pending bit.
 */
#include "lock_type.h"
#include "stealing.h"
#include "pv.h"

/* The greatest number of waiters that are kicked ahead of their turn. */
#define LW_PV_AHEAD_MAX 8

/* Without pv_steal, no thread may steal from a queue head. */
static inline bool lw_pv_is_strict(void)
{
	return !lw_tunable(pv_steal) || !lw_tunable(pv_starvation_limit);
}

static inline uint32_t lw_pv_starvation_limit(void)
{
	return lw_pv_is_strict() ? 0 : (uint32_t)lw_tunable(pv_starvation_limit);
}

/* On arrival: steal the lock. Sets *val to the word as it was last seen. */
static bool lw_pv_steal(union lw_word *lock, uint32_t *val)
{
	uint32_t spin = (uint32_t)lw_tunable(pv_arrival_spin);

	*val = lw_load(&lock->val, relaxed);
	if (!lw_tunable(pv_steal))
		return false;
	if (spin && !(*val & LW_PENDING))
		*val = lw_poll_lock(lock, spin);
	if (!lw_word_steal(lock, *val))
		return false;
	lw_count(steals_on_arrival);
	return true;
}

/* Compete for the lock with the pending bit, while nobody queues. False: we have to queue. */
static bool lw_pv_pending(union lw_word *lock, uint32_t val)
{
	if (!lw_tunable(pv_pending) || (val & (LW_TAIL_MASK | LW_PENDING)))
		return false;
	/* (*,0,*) -> (*,1,*) */
	val = lw_fetch_or(&lock->val, LW_PENDING, relaxed);
	if (val & LW_PENDING)
		return false;
	if (!(val & LW_TAIL_MASK)) {
		val = lw_poll_lock(lock, (uint32_t)lw_tunable(pv_spin));
		/* (*,1,0) -> (*,0,1) */
		if (!(val & (LW_LOCKED_MASK | LW_PARKED)) && lw_word_acquire(lock, val, false)) {
			lw_count(pending_acquisitions);
			return true;
		}
	}
	/* (*,1,*) -> (*,0,*) */
	lw_fetch_and(&lock->val, ~LW_PENDING, relaxed);
	return false;
}

/* Wait behind `prev`: HEAD or ABANDONED. */
static enum lw_wait_outcome lw_pv_wait(union lw_word *lock, struct lw_node *node, uint32_t tail,
				       struct lw_node *prev, const struct lw_wait_limit *limit)
{
	enum lw_wait_outcome outcome = LW_WAIT_LONGER;

	if (!lw_tunable(pv_wait_early))
		prev = NULL;
	while (outcome == LW_WAIT_LONGER)
		outcome = lw_node_poll(node, prev, (uint32_t)lw_tunable(pv_spin))
				  ? LW_WAIT_HEAD
				  : lw_queue_sleep(node, tail, limit, true);
	if (outcome == LW_WAIT_HEAD)
		lw_head_woken(lock, node, 0);
	return outcome;
}

/*
 * Wait as queue head: ACQUIRED or LEFT. A defeat is a halt, or LW_RACES lost races: we see the lock
 * free, but are too late.
 */
static enum lw_wait_outcome lw_pv_head(union lw_word *lock, struct lw_node *node, uint32_t tail,
				       const struct lw_wait_limit *limit)
{
	uint32_t starvation_limit = lw_pv_starvation_limit(), defeats = 0, races = 0;
	enum lw_waking waking = lw_tunable(pv_kick_at_unlock) ? LW_WAKE_AT_UNLOCK : LW_WAKE_NOW;
	bool strict = lw_pv_is_strict(), limit_reached = false;

	for (;;) {
		uint32_t val = lw_poll_lock(lock, (uint32_t)lw_tunable(pv_spin));
		bool free = !(val & LW_LOCKED_MASK), starved = defeats >= starvation_limit;

		if (free && lw_head_acquire(lock, node, tail, val, waking, strict))
			return LW_WAIT_ACQUIRED;
		/* A pending waiter may have cleared the bit. */
		if (starved && !(val & LW_PENDING))
			lw_disable_stealing(lock);
		if (limit_reached || lw_limit_reached(limit)) {
			if (starved && !strict)
				lw_allow_stealing(lock);
			lw_head_leave(lock, node, tail, strict);
			return LW_WAIT_LEFT;
		}
		if (free) {
			races = (races + 1) % LW_RACES;
			if (races)
				continue;
		} else {
			if (!lw_head_enter_table(lock, node, 0))
				continue;
			limit_reached = lw_head_sleep(lock, node, 0, limit);
		}
		if (!starved && starvation_limit != LW_NO_STARVATION_LIMIT)
			defeats++;
	}
}

/* Wait in the queue: ACQUIRED, LEFT or ABANDONED. */
static enum lw_wait_outcome lw_pv_queue(union lw_word *lock, uint32_t tail,
					const struct lw_wait_limit *limit)
{
	struct lw_node *node = lw_decode_tail(tail), *prev = lw_queue_join(lock, node, tail);
	enum lw_wait_outcome outcome = LW_WAIT_HEAD;

	if (prev)
		outcome = lw_pv_wait(lock, node, tail, prev, limit);
	if (outcome == LW_WAIT_HEAD)
		outcome = lw_pv_head(lock, node, tail, limit);
	if (outcome == LW_WAIT_ACQUIRED)
		lw_count(queued_acquisitions);
	else
		lw_count(waits_cancelled);
	return outcome;
}

bool lw_pv_lock_limited(struct lw_pv *pv, const struct lw_wait_limit *limit)
{
	union lw_word *lock = &pv->word;
	enum lw_wait_outcome outcome;
	struct lw_own_node own;
	uint32_t val;

	if (lw_pv_steal(lock, &val) || lw_pv_pending(lock, val))
		return true;
	if (!lw_node_take(limit, &own))
		return lw_steal_nodeless(lock, limit, (uint32_t)lw_tunable(pv_spin));
	outcome = lw_pv_queue(lock, own.tail, limit);
	if (outcome == LW_WAIT_ABANDONED)
		lw_slot_leave(lw_tail_slot(own.tail));
	else
		lw_node_return(&own);
	return outcome == LW_WAIT_ACQUIRED;
}

void lw_pv_lock_slow(struct lw_pv *lock)
{
	lw_pv_lock_limited(lock, NULL);
}

/* The first halted waiter among the few behind `node`. No thread can acquire the lock meanwhile. */
static inline struct lw_node *lw_pv_next_halted(struct lw_node *node)
{
	for (uint32_t steps = 0; steps < LW_PV_AHEAD_MAX; steps++) {
		node = lw_load(&node->next, dependency);
		if (!node || lw_load(&node->locked, relaxed) == LW_NODE_PARKED)
			return node;
	}
	return NULL;
}

/*
 * Kick the head, and with it some waiters ahead of their turn. Their nodes are read before the
 * release only, because they may be in another use after it.
 */
void lw_pv_unlock_slow(struct lw_pv *pv)
{
	union lw_word *lock = &pv->word;
	struct lw_node *kicked[1 + LW_PV_AHEAD_MAX], *node;
	uint32_t slots[1 + LW_PV_AHEAD_MAX], count = 0;

	node = lw_unlock_head(lock, &slots[0]);
	while (node) {
		kicked[count++] = node;
		if (count > lw_tunable(pv_kick_ahead) || count > LW_PV_AHEAD_MAX)
			break;
		node = lw_pv_next_halted(node);
		if (node) {
			slots[count] = lw_tail_slot(lw_load(&node->tail, relaxed));
			lw_count(kicks_ahead);
		}
	}
	/* (*,*,2) -> (*,*,0) */
	lw_field_store(lock, locked, 0, release);
	for (uint32_t i = 0; i < count; i++)
		lw_wake(kicked[i], slots[i]);
}

LW_DESCRIBE_LIMITED(pv, struct lw_pv,
		    .summary = "paravirt queued spinlock: waiters halt, arrivals may steal",
		    .traits = LW_TAIL_WORD, .tunables = "pv_",
		    .origin = "Long, pvqspinlock enhancements of 2014 and 2015");
