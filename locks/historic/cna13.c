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
#include "lock_type.h"
#include "pending_bit.h"
#include "queue_slot.h"

/* The effective NUMA node of a priority waiter, which is never moved. */
#define LW_CNA13_PRIORITY 0xffff
/* With shuffle reduction, one hand-over in this number searches the queue. */
#define LW_CNA13_SHUFFLE_ODDS 128

static inline bool lw_cna13_has_secondary(uint32_t locked)
{
	return locked > LW_NODE_HEAD;
}

static inline void lw_cna13_init_node(struct lw_node *node, uint32_t tail)
{
	bool priority = lw_tunable(priority_waiters) && lw_is_priority();
	uint16_t numa_node = lw_numa_node();

	lw_store(&node->tail, tail, relaxed);
	lw_store(&node->real_numa_node, numa_node, relaxed);
	lw_store(&node->numa_node, priority ? LW_CNA13_PRIORITY : numa_node, relaxed);
	if (priority)
		lw_count(priority_waiters);
}

/* head -> next -> after  becomes  head -> after; `next` becomes the last of the secondary queue. */
static lw_always_inline void lw_cna13_move(struct lw_node *head, struct lw_node *next,
					   struct lw_node *after)
{
	uint32_t locked = lw_load(&head->locked, relaxed);
	struct lw_node *head2 = next;

	lw_store(&head->next, after, relaxed);
	if (lw_cna13_has_secondary(locked)) {
		struct lw_node *tail2 = lw_decode_tail(locked);

		head2 = lw_load(&tail2->next, relaxed);
		lw_store(&tail2->next, next, relaxed);
	} else {
		lw_store(&head->secondary_until, lw_clock_after(lw_tunable(numa_threshold_ms)),
			 relaxed);
	}
	lw_store(&next->next, head2, relaxed);
	lw_store(&head->locked, lw_load(&next->tail, relaxed), relaxed);
	lw_count(secondary_moves);
}

/*
 * Prefer our NUMA node: move the successor to the secondary queue if it is of another node and not
 * the last, and let the new successor inherit the preference. False if there is no successor yet.
 */
static lw_always_inline bool lw_cna13_reorder(struct lw_node *head)
{
	struct lw_node *next = lw_load(&head->next, dependency);
	uint16_t preferred, other;

	if (!next)
		return false;

	preferred = lw_load(&head->numa_node, relaxed);
	if (preferred == LW_CNA13_PRIORITY)
		preferred = lw_load(&head->real_numa_node, relaxed);

	other = lw_load(&next->numa_node, relaxed);
	if (other != preferred) {
		struct lw_node *after = NULL;

		if (other != LW_CNA13_PRIORITY)
			after = lw_load(&next->next, dependency);
		if (after) {
			lw_cna13_move(head, next, after);
			next = after;
		}
		lw_store(&next->numa_node, preferred, relaxed);
	}
	return true;
}

enum lw_cna13_plan {
	LW_CNA13_KEEP,
	LW_CNA13_FLUSH,
	LW_CNA13_RETRY, /* there was no successor yet: reorder at the hand-over */
};

/* While the lock is held: how will we hand over the head's role? */
static lw_always_inline enum lw_cna13_plan lw_cna13_make_plan(struct lw_node *head)
{
	if (lw_cna13_has_secondary(lw_load(&head->locked, relaxed))) {
		if (!lw_numa_aware(cna) || lw_clock() > lw_load(&head->secondary_until, relaxed))
			return LW_CNA13_FLUSH;
	} else {
		if (!lw_numa_aware(cna))
			return LW_CNA13_KEEP;
		if (lw_tunable(shuffle_reduction) && !lw_chance(1, LW_CNA13_SHUFFLE_ODDS)) {
			lw_count(shuffles_skipped);
			return LW_CNA13_KEEP;
		}
	}
	return lw_cna13_reorder(head) ? LW_CNA13_KEEP : LW_CNA13_RETRY;
}

/* h2 -> ... -> t2 -> h2  becomes  h2 -> ... -> t2 -> next. Returns h2. */
static inline struct lw_node *lw_cna13_cut(struct lw_node *tail2, struct lw_node *next)
{
	struct lw_node *head2 = lw_load(&tail2->next, relaxed);

	lw_store(&tail2->next, next, relaxed);
	return head2;
}

/* Make `next` the queue head, with `value` for its `locked`. */
static inline void lw_cna13_pass(struct lw_node *head, struct lw_node *next, uint32_t value)
{
	if (lw_load(&next->real_numa_node, relaxed) == lw_load(&head->real_numa_node, relaxed))
		lw_count(local_handoffs);
	else
		lw_count(remote_handoffs);
	lw_mcs_hand_over(next, value);
}

/*
 * The word is (our tail,0,0): the primary queue is empty. Take the lock, and let the secondary
 * queue, if there is one, become the primary queue. False if the word has changed.
 */
static lw_always_inline bool lw_cna13_try_take_last(union lw_word *word, uint32_t val,
						    struct lw_node *head)
{
	uint32_t locked = lw_load(&head->locked, relaxed);
	struct lw_node *tail2, *head2;

	if (!lw_cna13_has_secondary(locked))
		/* (tail,0,0) -> (0,0,1) */
		return lw_try_cmpxchg(&word->val, &val, LW_LOCKED, relaxed);

	tail2 = lw_decode_tail(locked);
	head2 = lw_cna13_cut(tail2, NULL);
	/*
	 * (tail,0,0) -> (tail2,0,1); release: a waiter that queues behind tail2 finds its next NULL
	 */
	if (!lw_try_cmpxchg(&word->val, &val, locked | LW_LOCKED, release)) {
		lw_store(&tail2->next, head2, relaxed);
		return false;
	}
	lw_count(empty_flushes);
	lw_cna13_pass(head, head2, LW_NODE_HEAD);
	return true;
}

/* We have the lock, and `next` follows us in the primary queue: hand over the head's role. */
static lw_always_inline void lw_cna13_handoff(struct lw_node *head, struct lw_node *next,
					      enum lw_cna13_plan plan)
{
	uint32_t locked = lw_load(&head->locked, relaxed);

	if (plan == LW_CNA13_FLUSH) {
		lw_count(threshold_flushes);
		lw_cna13_pass(head, lw_cna13_cut(lw_decode_tail(locked), next), LW_NODE_HEAD);
		return;
	}

	if (plan == LW_CNA13_RETRY)
		lw_cna13_reorder(head);
	/* Read again: `next` may have been moved. */
	next = lw_load(&head->next, dependency);
	locked = lw_load(&head->locked, relaxed);
	if (lw_cna13_has_secondary(locked)) {
		lw_store(&next->secondary_until, lw_load(&head->secondary_until, relaxed), relaxed);
		lw_cna13_pass(head, next, locked);
	} else {
		lw_cna13_pass(head, next, LW_NODE_HEAD);
	}
}

/* The steps are those of lw_qspinlock_lock_slow(). */
void lw_cna13_lock_slow(struct lw_cna13 *lock, uint32_t val)
{
	union lw_word *word = &lock->word;
	struct lw_node *node, *next = NULL;
	enum lw_cna13_plan plan;
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
	lw_cna13_init_node(node, own.tail);

	if (lw_word_trylock(word))
		goto acquired;

	prev = lw_word_xchg_tail(word, own.tail);
	if (prev) {
		lw_store(&lw_decode_tail(prev)->next, node, release);
		lw_mcs_wait(node);
		next = lw_load(&node->next, dependency);
		if (next)
			lw_prefetch_write(&next->locked);
	}
	lw_count(queued_acquisitions);
	plan = lw_cna13_make_plan(node);

	/* (*,*,*) -> (*,0,0) */
	while (val = lw_await_eq(&word->val, LW_LOCKED_PENDING_MASK, 0, acquire),
	       (val & LW_TAIL_MASK) == own.tail) {
		if (lw_cna13_try_take_last(word, val, node))
			goto acquired;
		/* Another thread has set the pending bit: see qspinlock.c. */
	}
	/* (n,0,0) -> (n,0,1) */
	lw_field_store(word, locked, LW_LOCKED, relaxed);
	if (!next)
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
	lw_cna13_handoff(node, next, plan);
acquired:
	lw_node_return(&own);
}

LW_DESCRIBE(cna13, struct lw_cna13, .summary = "cna as it was published, with a circular queue",
	    .traits = LW_SPINS | LW_NUMA_AWARE | LW_TAIL_WORD | LW_HISTORIC,
	    .origin = "Kogan and Dice, Linux series v13, 2020");
