// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queued spinlock: the second contender waits with the pending bit, all others in an MCS queue.
 * Words are (tail, pending, locked), with * for any value:
 *
 *   fast path     (0,0,0) -- first thread -----------------------> (0,0,1)
 *   pending bit   (0,0,1) -- second contender sets the bit ------> (0,1,1)
 *                 (0,1,0) -- and takes over after the unlock ----> (0,0,1)
 *   queue         (p,*,*) -- third and later ones join ----------> (n,*,*)   behind p, or as head
 *                 (n,0,0) -- the queue head takes the lock, and
 *                            hands over the head's role ---------> (n,0,1)
 *                            or is the last in the queue --------> (0,0,1)
 *   unlock        (*,*,1) -- holder -----------------------------> (*,*,0)
 *
 * With the pending bit the second contender needs no queue node, whose lines may not be in the
 * cache. Only the queue head polls the word. Each waiter behind it polls its own node, until its
 * predecessor hands over the head's role.
 *
 * Promises: mutual exclusion; FIFO among queued waiters; no waiter is lost; no memory is allocated;
 * correct without a free queue node.
 *
 * Orders: `locked` is cleared by a release store. A thread acquires the lock in one of two ways: by
 * a compare-and-swap that acquires; or by a relaxed store or compare-and-swap, after it has seen
 * `locked` 0 by an operation that acquires, a poll or the fetch-or that sets `pending`. Only the
 * pending waiter or the queue head may use the second way, so no other thread acquires the lock in
 * between. The queue's own orders are in queue_node.h.
 */
#include "lock_type.h"
#include "pending_bit.h"
#include "qspinlock.h"
#include "queue_slot.h"

void lw_qspinlock_lock_slow(struct lw_qspinlock *lock, uint32_t val)
{
	union lw_word *word = &lock->word;
	struct lw_node *node, *next = NULL;
	struct lw_own_node own;
	uint32_t prev;

	if (lw_pending_lock(word, val))
		return;

	if (!lw_node_take(NULL, &own)) {
		lw_spin_nodeless(word);
		return;
	}
	node = own.node;
	lw_node_init(node);

	/* To fetch the node's lines may have taken long. Has the lock become free meanwhile? */
	if (lw_word_trylock(word))
		goto acquired;

	prev = lw_word_xchg_tail(word, own.tail);
	if (prev && !lw_is_dead(lw_decode_tail(prev))) {
		lw_store(&lw_decode_tail(prev)->next, node, release);
		lw_mcs_wait(node);
		next = lw_load(&node->next, dependency);
		if (next)
			lw_prefetch_write(&next->locked);
		lw_count_handoff(lw_tail_slot(prev));
	}
	lw_count(queued_acquisitions);

	/* We are queue head. (*,*,*) -> (*,0,0): a holder or a pending waiter may be ahead of us */
	while (val = lw_await_eq(&word->val, lw_head_awaits(), 0, acquire),
	       !next && (val & LW_TAIL_MASK) == own.tail) {
		/* (tail,0,0) -> (0,0,1) */
		if (lw_try_cmpxchg(&word->val, &val, LW_LOCKED, relaxed))
			goto acquired;
		/*
		 * Another thread has set the pending bit. If it has a node it will be our
		 * successor. If not, it clears the bit, and we are still the last: poll again.
		 */
	}
	/* (n,0,0) -> (n,0,1): only the queue head may do this while there is a tail */
	lw_field_store(word, locked, LW_LOCKED, relaxed);
	if (!next)
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	lw_mcs_hand_over(next, LW_NODE_HEAD);
acquired:
	lw_node_return(&own);
}

LW_DESCRIBE(qspinlock, struct lw_qspinlock,
	    .summary = "queued spinlock: pending bit, then an MCS queue",
	    .traits = LW_FIFO | LW_SPINS | LW_TAIL_WORD,
	    .origin = "Long and Zijlstra, Linux 4.2; MCS queue of 1991");
