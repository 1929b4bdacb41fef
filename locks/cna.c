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
 * In the published lock the queue head moves its successor whatever the waiter behind it is. With
 * one or two threads on each of several nodes, no waiter may be of the preferred node: each moves
 * then, to no use.
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
#include "lock_type.h"
#include "pending_bit.h"
#include "queue_slot.h"

/* The effective NUMA node of a priority waiter, which is never moved. */
#define LW_CNA_PRIORITY 0xffff
/* With shuffle reduction, one hand-over in this number searches the queue. */
#define LW_CNA_SHUFFLE_ODDS 128

static inline bool lw_cna_has_secondary(uint32_t locked)
{
	return locked > LW_NODE_HEAD;
}

static inline void lw_cna_init_node(struct lw_node *node, uint32_t tail)
{
	uint16_t numa_node = lw_numa_node();
	bool priority = lw_is_priority();

	lw_store(&node->tail, tail, relaxed);
	lw_store(&node->real_numa_node, numa_node, relaxed);
	lw_store(&node->numa_node, priority ? LW_CNA_PRIORITY : numa_node, relaxed);
	if (priority)
		lw_count(priority_waiters);
}

/* `next` follows us, and becomes the last of the secondary queue, whose tail *locked becomes. */
static lw_always_inline void lw_cna_move(struct lw_node *head, struct lw_node *next,
					 uint32_t *locked)
{
	struct lw_node *head2 = next;

	lw_store(&next->next, NULL, relaxed);
	if (lw_cna_has_secondary(*locked)) {
		struct lw_node *tail2 = lw_decode_tail(*locked);

		head2 = lw_load(&tail2->secondary_head, relaxed);
		lw_store(&tail2->next, next, relaxed);
	} else {
		lw_store(&head->secondary_until, lw_clock_after(lw_tunable(numa_threshold_ms)),
			 relaxed);
	}
	lw_store(&next->secondary_head, head2, relaxed);
	*locked = lw_load(&next->tail, relaxed);
	lw_count(secondary_moves);
}

/*
 * Should `next`, of another NUMA node than the preferred one, be moved to the secondary queue? The
 * first waiter is moved only if the one behind it is of the preferred node: with few threads the
 * queue may have none of that node, and then moving helps nobody.
 */
static inline bool lw_cna_should_move(const struct lw_node *after, uint16_t preferred,
				      uint32_t locked)
{
	return lw_cna_has_secondary(locked) ||
	       lw_load(&after->real_numa_node, relaxed) == preferred;
}

/*
 * Prefer our NUMA node: move the successor to the secondary queue if it is of another node and not
 * the last, and let the new successor inherit the preference. Returns the new successor.
 */
static lw_always_inline struct lw_node *lw_cna_reorder(struct lw_node *head, struct lw_node *next,
						       uint32_t *locked)
{
	uint16_t preferred = lw_load(&head->numa_node, relaxed);
	uint16_t other = lw_load(&next->numa_node, relaxed);
	struct lw_node *after = NULL;

	if (preferred == LW_CNA_PRIORITY)
		preferred = lw_load(&head->real_numa_node, relaxed);
	if (other == preferred)
		return next;

	if (other != LW_CNA_PRIORITY)
		after = lw_load(&next->next, dependency);
	if (after && lw_cna_should_move(after, preferred, *locked)) {
		lw_cna_move(head, next, locked);
		next = after;
	}
	lw_store(&next->numa_node, preferred, relaxed);
	return next;
}

/* Is it the secondary queue's turn? */
static inline bool lw_cna_is_too_old(const struct lw_node *head)
{
	return !lw_numa_aware(cna) || lw_clock() > lw_load(&head->secondary_until, relaxed);
}

/*
 * Choose the next queue head, in the way keep or flush, when `next` follows us in the primary
 * queue. *locked is the value that we were given, and becomes the one to give to it.
 */
static lw_always_inline struct lw_node *lw_cna_heir(struct lw_node *head, struct lw_node *next,
						    uint32_t *locked)
{
	if (!lw_cna_has_secondary(*locked)) {
		if (!lw_numa_aware(cna))
			return next;
		if (lw_tunable(shuffle_reduction) && !lw_chance(1, LW_CNA_SHUFFLE_ODDS)) {
			lw_count(shuffles_skipped);
			return next;
		}
	} else if (lw_cna_is_too_old(head)) {
		struct lw_node *tail2 = lw_decode_tail(*locked);

		/* h2 -> ... -> t2 -> next */
		lw_store(&tail2->next, next, relaxed);
		*locked = LW_NODE_HEAD;
		lw_count(threshold_flushes);
		return lw_load(&tail2->secondary_head, relaxed);
	}
	return lw_cna_reorder(head, next, locked);
}

/* Make `next` the queue head, with `value` for its `locked`. */
static lw_always_inline void lw_cna_pass(struct lw_node *head, struct lw_node *next, uint32_t value)
{
	(void)head;
	/* Not read where nothing is counted: it takes a transfer. */
	lw_count_pass(lw_load(&next->real_numa_node, relaxed),
		      lw_load(&head->real_numa_node, relaxed));
	lw_mcs_hand_over(next, value);
}

/*
 * The word is (our tail,0,0): the primary queue is empty. Take the lock, and let the secondary
 * queue, if there is one, become the primary queue. False if the word has changed.
 */
static lw_always_inline bool lw_cna_try_take_last(union lw_word *word, uint32_t val,
						  struct lw_node *head, uint32_t locked)
{
	if (!lw_cna_has_secondary(locked))
		/* (tail,0,0) -> (0,0,1) */
		return lw_try_cmpxchg(&word->val, &val, LW_LOCKED, relaxed);

	/*
	 * (tail,0,0) -> (tail2,0,1); release: a waiter that queues behind tail2 finds its next NULL
	 */
	if (!lw_try_cmpxchg(&word->val, &val, locked | LW_LOCKED, release))
		return false;
	lw_count(empty_flushes);
	lw_cna_pass(head, lw_load(&lw_decode_tail(locked)->secondary_head, relaxed), LW_NODE_HEAD);
	return true;
}

/* The steps are those of lw_qspinlock_lock_slow(). */
void lw_cna_lock_slow(struct lw_cna *lock, uint32_t val)
{
	struct lw_node *node, *next, *heir = NULL;
	union lw_word *word = &lock->word;
	uint32_t prev, locked = LW_NODE_HEAD;
	struct lw_own_node own;

	if (lw_pending_lock(word, val))
		return;

	if (!lw_node_take(NULL, &own)) {
		lw_spin_nodeless(word);
		return;
	}
	node = own.node;
	lw_node_init(node);
	lw_cna_init_node(node, own.tail);

	if (lw_word_trylock(word))
		goto acquired;

	prev = lw_word_xchg_tail(word, own.tail);
	if (prev && !lw_is_dead(lw_decode_tail(prev))) {
		lw_store(&lw_decode_tail(prev)->next, node, release);
		locked = lw_mcs_wait(node);
		next = lw_load(&node->next, dependency);
		/* While the lock is held, decide all that can be decided. */
		if (next) {
			lw_prefetch_write(&next->locked);
			heir = lw_cna_heir(node, next, &locked);
		}
	}
	lw_count(queued_acquisitions);

	/* (*,*,*) -> (*,0,0) */
	while (val = lw_await_eq(&word->val, lw_head_awaits(), 0, acquire),
	       !heir && (val & LW_TAIL_MASK) == own.tail) {
		if (lw_cna_try_take_last(word, val, node, locked))
			goto acquired;
		/* Another thread has set the pending bit: see qspinlock.c. */
	}
	/* (n,0,0) -> (n,0,1) */
	lw_field_store(word, locked, LW_LOCKED, relaxed);
	if (!heir) {
		next = lw_await_ne(&node->next, ~(uintptr_t)0, 0, dependency);
		heir = lw_cna_heir(node, next, &locked);
	}
	if (lw_cna_has_secondary(locked))
		lw_store(&heir->secondary_until, lw_load(&node->secondary_until, relaxed), relaxed);
	lw_cna_pass(node, heir, locked);
acquired:
	lw_node_return(&own);
}

LW_DESCRIBE(cna, struct lw_cna, .summary = "compact NUMA-aware queued spinlock",
	    .traits = LW_SPINS | LW_NUMA_AWARE | LW_TAIL_WORD,
	    .origin = "Dice and Kogan, EuroSys 2019; Linux series v13");
