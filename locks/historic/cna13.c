// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CNA as version 13 of its series for Linux has it. It differs from cna (cna.c) in the links of the
 * secondary queue, and by one tick in its greatest age.
 *
 * The secondary queue is a circle, which the encoded tail in `locked` of the queue head opens:
 *
 *   head -> next -> ... -> tail                                primary queue
 *     |
 *     `- locked: tail of the secondary queue,  h2 -> ... -> t2 -> h2
 *
 * If the primary queue is empty, the queue head cuts the circle before it tries to make the
 * secondary queue the primary one, because t2 must not have a successor then. If another thread has
 * queued meanwhile, the queue head closes the circle again. Both write to the node of t2, a waiter
 * on another NUMA node that polls the same cache line.
 *
 * The secondary queue goes first when strictly more time than the threshold has gone by; in cna,
 * when the threshold has gone by.
 *
 * Promises and orders: those of cna. The cut is ordered before the compare-and-swap that shows t2
 * to arrivals, a release.
 */
#include "cna13.h"
#include "cna_queue.h"
#include "lock_type.h"

static inline void lw_cna13_append(struct lw_node *head, struct lw_node *tail2,
				   struct lw_node *added)
{
	struct lw_node *head2 = added;

	if (tail2) {
		head2 = lw_load(&tail2->next, relaxed);
		lw_store(&tail2->next, added, relaxed);
	} else {
		lw_cna_begin(head);
	}
	lw_store(&added->next, head2, relaxed);
}

static inline struct lw_node *lw_cna13_splice(struct lw_node *tail2, struct lw_node *next)
{
	struct lw_node *head2 = lw_load(&tail2->next, relaxed);

	/* h2 -> ... -> t2 -> next */
	lw_store(&tail2->next, next, relaxed);
	return head2;
}

static inline struct lw_node *lw_cna13_try_promote(union lw_word *lock, uint32_t val,
						   uint32_t tail2)
{
	struct lw_node *last = lw_decode_tail(tail2);
	struct lw_node *head2 = lw_cna13_splice(last, NULL);

	/*
	 * (tail,0,0) -> (tail2,0,1); release: a waiter that queues behind tail2 finds its next NULL
	 */
	if (lw_try_cmpxchg(&lock->val, &val, tail2 | LW_LOCKED, release))
		return head2;
	lw_store(&last->next, head2, relaxed);
	return NULL;
}

static inline bool lw_cna13_is_too_old(uint64_t age, uint64_t threshold)
{
	return age > threshold;
}

static const struct lw_secondary_policy lw_cna13_secondary_policy = {
	.append = lw_cna13_append,
	.splice = lw_cna13_splice,
	.try_promote = lw_cna13_try_promote,
	.is_too_old = lw_cna13_is_too_old,
};

LW_DEFINE_CNA_LOCK(cna13)

LW_DESCRIBE(cna13, struct lw_cna13, .summary = "cna as it was published, with a circular queue",
	    .traits = LW_SPINS | LW_NUMA_AWARE | LW_TAIL_WORD | LW_HISTORIC,
	    .origin = "Kogan and Dice, Linux series v13, 2020");
