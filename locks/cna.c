// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CNA, the compact NUMA-aware lock: the queued spinlock with two queues.
 *
 * The lock serves the primary queue, most of whose waiters are on the preferred NUMA node. The
 * queue head moves waiters of other NUMA nodes that it meets to the secondary queue. That queue is
 * known by its last node, and the last node knows the first:
 *
 *   head -> next -> ... -> tail                                primary queue
 *     |
 *     `- locked: tail of the secondary queue,  h2 -> ... -> t2 -> NULL
 *                                               ^-secondary_head-'
 *
 * Only the queue head accesses the secondary queue. It finds the queue in `locked` of its own queue
 * node. LW_NODE_WAITING (in a head that never waited) and LW_NODE_HEAD mean that there is no
 * secondary queue. Any other value is the encoded tail of the last node of the secondary queue. So
 * neither the lock nor a queue node grows.
 *
 * The states of the lock word are those of the queued spinlock (qspinlock.c). A queue head hands
 * over its role in one of three ways:
 *
 *   keep   to the successor in the primary queue; the secondary queue goes along
 *   flush  the secondary queue is too old: it is put in front of the primary queue, and its first
 *          waiter becomes queue head. This changes the preferred node.
 *   empty  the primary queue is empty: the secondary queue becomes the primary queue
 *
 * In the published lock the secondary queue is a circle: its last node links to the first. The
 * queue head has to open the circle before each attempt at `empty`, and to close it if the attempt
 * fails. Here such an attempt writes nothing to the waiters' cache lines.
 *
 * Promises: those of the queued spinlock, except that a waiter may be passed over. Each flush
 * changes the preferred NUMA node, and then a new secondary queue begins. So with n NUMA nodes a
 * waiter is passed over for n - 1 thresholds at most, and a priority waiter never.
 *
 * Orders: those of the queued spinlock. The fields of the secondary queue are relaxed, because only
 * the queue head touches them, and the hand-over of its role is a release and acquire pair.
 */
#include "cna.h"
#include "cna_queue.h"
#include "lock_type.h"

static inline void lw_cna_append(struct lw_node *head, struct lw_node *tail2, struct lw_node *added)
{
	struct lw_node *head2 = added;

	lw_store(&added->next, NULL, relaxed);
	if (tail2) {
		head2 = lw_load(&tail2->secondary_head, relaxed);
		lw_store(&tail2->next, added, relaxed);
	} else {
		lw_cna_begin(head);
	}
	lw_store(&added->secondary_head, head2, relaxed);
}

static inline struct lw_node *lw_cna_splice(struct lw_node *tail2, struct lw_node *next)
{
	/* h2 -> ... -> t2 -> next */
	lw_store(&tail2->next, next, relaxed);
	return lw_load(&tail2->secondary_head, relaxed);
}

static inline struct lw_node *lw_cna_try_promote(union lw_word *lock, uint32_t val, uint32_t tail2)
{
	/*
	 * (tail,0,0) -> (tail2,0,1); release: a waiter that queues behind tail2 finds its next NULL
	 */
	if (!lw_try_cmpxchg(&lock->val, &val, tail2 | LW_LOCKED, release))
		return NULL;
	return lw_load(&lw_decode_tail(tail2)->secondary_head, relaxed);
}

static inline bool lw_cna_is_too_old(uint64_t age, uint64_t threshold)
{
	return age >= threshold;
}

static const struct lw_secondary_policy lw_cna_secondary_policy = {
	.append = lw_cna_append,
	.splice = lw_cna_splice,
	.try_promote = lw_cna_try_promote,
	.is_too_old = lw_cna_is_too_old,
};

LW_DEFINE_CNA_LOCK(cna)

LW_DESCRIBE(cna, struct lw_cna, .summary = "compact NUMA-aware queued spinlock",
	    .traits = LW_SPINS | LW_NUMA_AWARE | LW_TAIL_WORD,
	    .origin = "Dice and Kogan, EuroSys 2019; Linux series v13");
