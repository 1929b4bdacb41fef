/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slow path that all queued spinlocks share.
 *
 *   (0,0,1) -- second contender --> (0,1,1) --> (0,1,0) --> (0,0,1)     pending
 *      |
 *      `------ third and later ---> (n,*,*)  MCS queue of nodes; its head waits
 *                                            for (n,0,0), takes (n,0,1) and hands
 *                                            the head's role to its successor
 *
 * What a lock may do differently in such a queue, it says in a lw_queue_policy; one
 * that queues in another way altogether brings a lw_queue_fn. Both are compile-time
 * constants, so every call through them is a direct one.
 *
 * Promises: mutual exclusion, no lost waiter, FIFO among queued waiters and nothing
 * allocated (unless the policy or the lw_queue_fn has it otherwise), correct without
 * a free queue node (deep nesting, more threads than slots).
 */
#ifndef LW_QUEUED_H
#define LW_QUEUED_H

#include "queue_node.h"

/* How long to watch a pending waiter take over before queueing behind it. */
#define LW_PENDING_LOOPS 512

struct lw_queue_policy {
	/* Set up what the policy keeps in a node, before anyone can find it. */
	void (*init_node)(struct lw_node *node, uint32_t tail);
	/*
	 * We are queue head, and came after `prev`, the encoded tail of a waiter or
	 * 0: look after the queue while the lock is held. Gives a plan for handoff.
	 */
	uint32_t (*wait_head)(struct lw_node *node, uint32_t prev);
	/*
	 * We hold (our tail,0,0): if nobody else waits, take the lock and leave
	 * no tail of ours. False when somebody does.
	 */
	bool (*try_clear_tail)(union lw_word *lock, uint32_t val, struct lw_node *node);
	/* We have the lock, `next` follows us: make somebody queue head. */
	void (*handoff)(struct lw_node *node, struct lw_node *next, uint32_t plan);
};

/* No queue node to be had: compete for an empty queue, outside of any order. */
static inline bool lw_queued_spin_nodeless(union lw_word *lock, const struct lw_wait_limit *limit)
{
	(void)limit;
	lw_count(nodeless_acquisitions);
	while (!lw_word_trylock(lock))
		lw_await_eq(&lock->val, ~LW_SERVICE_MASK, 0, relaxed);
	return true;
}

static lw_always_inline void lw_queue_and_wait(union lw_word *lock, uint32_t tail,
					       struct lw_node *node,
					       const struct lw_queue_policy *policy)
{
	struct lw_node *next = NULL;
	uint32_t val, old, plan;

	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, LW_NODE_WAITING, relaxed);
	policy->init_node(node, tail);

	/* The node's lines may have been cold: has the lock become free meanwhile? */
	if (lw_word_trylock(lock))
		return;

	old = lw_word_xchg_tail(lock, tail);
	if (old) {
		lw_store(&lw_decode_tail(old)->next, node, release);
		lw_mcs_wait(node);
		next = lw_load(&node->next, dependency);
		if (next)
			lw_prefetch_write(&next->locked);
	}

	lw_count(queued_acquisitions);
	plan = policy->wait_head(node, old);

	/* (*,*,*) -> (*,0,0): a holder or a pending waiter may be ahead of us */
	while (val = lw_await_eq(&lock->val, LW_LOCKED_PENDING_MASK, 0, acquire),
	       (val & LW_TAIL_MASK) == tail) {
		/* (tail,0,0) -> (0,0,1) */
		if (policy->try_clear_tail(lock, val, node))
			return;
		/*
		 * Somebody has set the pending bit. Who has a node will be our successor,
		 * but who has none clears the bit and leaves us the last: look again.
		 */
	}
	/* (n,0,0) -> (n,0,1): only the queue head may, while there is a tail */
	lw_field_store(lock, locked, LW_LOCKED, relaxed);
	if (!next)
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	policy->handoff(node, next, plan);
}

/* What queueing came to. */
enum lw_queue_end {
	LW_QUEUE_ACQUIRED,
	/* `limit` has ended before. */
	LW_QUEUE_LEFT,
	/* The same, and the node is in the queue still: it, and its slot, is no longer ours. */
	LW_QUEUE_ABANDONED,
};

/* How a lock queues: with `node`, which is `tail` in the word. */
typedef enum lw_queue_end (*lw_queue_fn)(union lw_word *lock, uint32_t tail, struct lw_node *node,
					 const struct lw_wait_limit *limit);
/* And without one, until the lock is ours; false if `limit` has ended before. */
typedef bool (*lw_nodeless_fn)(union lw_word *lock, const struct lw_wait_limit *limit);

static lw_always_inline bool lw_queue_in_slot(union lw_word *lock, uint32_t slot,
					      const struct lw_wait_limit *limit, lw_queue_fn queue,
					      lw_nodeless_fn nodeless)
{
	struct lw_node *nodes = lw_slot_nodes(slot);
	uint32_t index = lw_load(&nodes->count, relaxed);
	enum lw_queue_end end = LW_QUEUE_LEFT;

	lw_store(&nodes->count, index + 1, relaxed);
	/* An interruption from here on must see the node as taken. */
	lw_barrier();

	/* A slot with a wait that was interrupted cannot be left. */
	if (limit ? !index && lw_slot_may_be_abandoned() : index < LW_NODES_PER_SLOT) {
		end = queue(lock, lw_encode_tail(slot, index), &nodes[index], limit);
		if (end == LW_QUEUE_ABANDONED)
			return false;
	} else if (nodeless(lock, limit)) {
		end = LW_QUEUE_ACQUIRED;
	}

	lw_barrier();
	lw_store(&nodes->count, index, relaxed);
	return end == LW_QUEUE_ACQUIRED;
}

/* Wait in the lock's queue, if there is a node for it; false if `limit` has ended before. */
static lw_always_inline bool lw_queued_wait(union lw_word *lock, const struct lw_wait_limit *limit,
					    lw_queue_fn queue, lw_nodeless_fn nodeless)
{
	uint32_t slot = lw_slot_enter();
	bool acquired =
		slot ? lw_queue_in_slot(lock, slot, limit, queue, nodeless) : nodeless(lock, limit);

	lw_slot_leave(slot);
	return acquired;
}

/* The lock word was seen as `val`, not free. Returns when the lock is ours. */
static lw_always_inline void lw_queued_slowpath(union lw_word *lock, uint32_t val,
						lw_queue_fn queue)
{
	/* (0,1,0): the pending waiter is just taking over */
	if ((val & ~LW_SERVICE_MASK) == LW_PENDING)
		val = lw_await_ne_bounded(&lock->val, ~LW_SERVICE_MASK, LW_PENDING,
					  LW_PENDING_LOOPS);

	if (!(val & (LW_TAIL_MASK | LW_PENDING))) {
		/* (0,0,*) -> (0,1,*) */
		val = lw_fetch_or(&lock->val, LW_PENDING, acquire);
		if (!(val & (LW_TAIL_MASK | LW_PENDING))) {
			/* (*,1,1) -> (*,1,0) */
			if (val & LW_LOCKED_MASK)
				lw_await_eq(&lock->val, LW_LOCKED_MASK, 0, acquire);
			/* (*,1,0) -> (*,0,1): one store, others may queue meanwhile */
			lw_field_store(lock, locked_pending,
				       (uint16_t)((val & LW_SERVICE_MASK) | LW_LOCKED), relaxed);
			lw_count(pending_acquisitions);
			return;
		}
		/* (n,0,*) was there before us: (n,1,*) -> (n,0,*) */
		if (!(val & LW_PENDING))
			lw_field_store(lock, pending, (uint8_t)((val & LW_SERVICE_MASK) >> 8),
				       relaxed);
	}

	lw_queued_wait(lock, NULL, queue, lw_queued_spin_nodeless);
}

#endif
