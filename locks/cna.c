// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * CNA, the compact NUMA-aware lock: the queued spinlock with two queues.
 *
 * The primary queue holds the waiters that the lock serves next, most of them
 * on the node it prefers at present. Waiters of other nodes that the queue head
 * meets go to the secondary queue, known by its last node, which knows the first:
 *
 *   head -> next -> ... -> tail                                primary
 *     |
 *     `- locked: tail of the secondary queue,  h2 -> ... -> t2 -> NULL
 *                                               ^-secondary_head-'
 *
 * The queue head alone touches the secondary queue. `locked` of a node says
 * what came with the head's role: LW_NODE_WAITING for a head that never waited
 * and LW_NODE_HEAD, no secondary queue; any other value, the encoded tail of
 * the secondary queue's last node. So neither the lock nor a node grows.
 *
 * A head leaves in one of three ways:
 *   keep   hand over to the next of the primary queue, the secondary goes along
 *   flush  the secondary queue is too old: put all of it in front, hand over to
 *          its head; this changes the preferred node
 *   empty  no primary queue left: the secondary becomes the primary
 *
 * The published lock closes the secondary queue to a circle instead, and so has to
 * cut it before, and mend it after, each attempt at the last way that fails. Here
 * such an attempt writes nothing to the waiters' lines.
 *
 * Promises: those of queued.h, except that a waiter may be passed over. Each flush
 * lets the preference move on, and the next secondary queue is begun anew, so with n
 * nodes a waiter is passed over for up to n - 1 thresholds; a priority waiter never.
 */
#include "cna.h"
#include "lock_type.h"
#include "queued.h"

/* Effective node of a waiter that is never moved. */
#define LW_CNA_PRIORITY 0xffff
/* With shuffle reduction, one hand-off in so many looks at the queue. */
#define LW_CNA_SHUFFLE_ODDS 128

static inline bool lw_cna_has_secondary(uint32_t locked)
{
	return locked > LW_NODE_HEAD;
}

static inline void lw_cna_init_node(struct lw_node *node, uint32_t tail)
{
	bool priority = lw_tunable(priority_waiters) && lw_is_priority();
	uint16_t numa_node = lw_numa_node();

	lw_store(&node->tail, tail, relaxed);
	lw_store(&node->real_numa_node, numa_node, relaxed);
	lw_store(&node->numa_node, priority ? LW_CNA_PRIORITY : numa_node, relaxed);
	if (priority)
		lw_count(priority_waiters);
}

/* head -> next -> after  becomes  head -> after, with next last of the secondary queue. */
static inline void lw_cna_move(struct lw_node *head, struct lw_node *next, struct lw_node *after)
{
	uint32_t locked = lw_load(&head->locked, relaxed);
	struct lw_node *head2 = next;

	lw_store(&head->next, after, relaxed);
	lw_store(&next->next, NULL, relaxed);
	if (lw_cna_has_secondary(locked)) {
		struct lw_node *tail2 = lw_decode_tail(locked);

		head2 = lw_load(&tail2->secondary_head, relaxed);
		lw_store(&tail2->next, next, relaxed);
	} else {
		lw_store(&head->secondary_since, lw_clock(), relaxed);
	}
	lw_store(&next->secondary_head, head2, relaxed);
	lw_store(&head->locked, lw_load(&next->tail, relaxed), relaxed);
	lw_count(secondary_moves);
}

/*
 * Prefer our node: pass over the successor if it is of another node and not the
 * last, and let whoever is next then inherit the preference. False if no
 * successor has shown up yet.
 */
static inline bool lw_cna_reorder(struct lw_node *head)
{
	struct lw_node *next = lw_load(&head->next, dependency);
	uint16_t preferred, other;

	if (!next)
		return false;

	preferred = lw_load(&head->numa_node, relaxed);
	if (preferred == LW_CNA_PRIORITY)
		preferred = lw_load(&head->real_numa_node, relaxed);

	other = lw_load(&next->numa_node, relaxed);
	if (other != preferred) {
		struct lw_node *after = NULL;

		if (other != LW_CNA_PRIORITY)
			after = lw_load(&next->next, dependency);
		if (after) {
			lw_cna_move(head, next, after);
			next = after;
		}
		lw_store(&next->numa_node, preferred, relaxed);
	}
	return true;
}

enum lw_cna_plan {
	LW_CNA_KEEP,
	LW_CNA_FLUSH,
	LW_CNA_LOOK_AGAIN, /* there was no successor to look at */
};

static inline uint32_t lw_cna_wait_head(struct lw_node *head, uint32_t prev)
{
	(void)prev;
	if (lw_cna_has_secondary(lw_load(&head->locked, relaxed))) {
		uint64_t age = lw_clock() - lw_load(&head->secondary_since, relaxed);

		if (!lw_numa_aware(cna) || age >= (uint64_t)lw_tunable(numa_threshold_ms) * 1000000)
			return LW_CNA_FLUSH;
	} else {
		if (!lw_numa_aware(cna))
			return LW_CNA_KEEP;
		if (lw_tunable(shuffle_reduction) && !lw_chance(1, LW_CNA_SHUFFLE_ODDS)) {
			lw_count(shuffles_skipped);
			return LW_CNA_KEEP;
		}
	}
	return lw_cna_reorder(head) ? LW_CNA_KEEP : LW_CNA_LOOK_AGAIN;
}

static inline void lw_cna_pass(struct lw_node *head, struct lw_node *next, uint32_t value)
{
	if (lw_load(&next->real_numa_node, relaxed) == lw_load(&head->real_numa_node, relaxed))
		lw_count(local_handoffs);
	else
		lw_count(remote_handoffs);
	lw_mcs_handoff(next, value);
}

static inline bool lw_cna_try_clear_tail(union lw_word *lock, uint32_t val, struct lw_node *head)
{
	uint32_t locked = lw_load(&head->locked, relaxed);

	if (!lw_cna_has_secondary(locked))
		/* (tail,0,0) -> (0,0,1) */
		return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, relaxed);

	/* (tail,0,0) -> (tail2,0,1); release: whoever queues behind tail2 finds its next NULL */
	if (!lw_try_cmpxchg(&lock->val, &val, locked | LW_LOCKED, release))
		return false;
	lw_count(empty_flushes);
	lw_cna_pass(head, lw_load(&lw_decode_tail(locked)->secondary_head, relaxed), LW_NODE_HEAD);
	return true;
}

static inline void lw_cna_handoff(struct lw_node *head, struct lw_node *next, uint32_t plan)
{
	uint32_t locked = lw_load(&head->locked, relaxed);

	if (plan == LW_CNA_FLUSH) {
		struct lw_node *tail2 = lw_decode_tail(locked);

		/* h2 -> ... -> t2 -> next */
		lw_store(&tail2->next, next, relaxed);
		lw_count(threshold_flushes);
		lw_cna_pass(head, lw_load(&tail2->secondary_head, relaxed), LW_NODE_HEAD);
		return;
	}

	if (plan == LW_CNA_LOOK_AGAIN)
		lw_cna_reorder(head);
	/* Read anew: `next` may have been moved. */
	next = lw_load(&head->next, dependency);
	locked = lw_load(&head->locked, relaxed);
	if (lw_cna_has_secondary(locked)) {
		lw_store(&next->secondary_since, lw_load(&head->secondary_since, relaxed), relaxed);
		lw_cna_pass(head, next, locked);
	} else {
		lw_cna_pass(head, next, LW_NODE_HEAD);
	}
}

static const struct lw_queue_policy lw_cna_policy = {
	.init_node = lw_cna_init_node,
	.wait_head = lw_cna_wait_head,
	.try_clear_tail = lw_cna_try_clear_tail,
	.handoff = lw_cna_handoff,
};

static lw_always_inline enum lw_queue_end lw_cna_queue(union lw_word *lock, uint32_t tail,
						       struct lw_node *node,
						       const struct lw_wait_limit *limit)
{
	(void)limit;
	lw_queue_and_wait(lock, tail, node, &lw_cna_policy);
	return LW_QUEUE_ACQUIRED;
}

void lw_cna_lock_slow(struct lw_cna *lock, uint32_t val)
{
	lw_queued_slowpath(&lock->word, val, lw_cna_queue);
}

LW_DESCRIBE(cna, struct lw_cna, .summary = "compact NUMA-aware queued spinlock",
	    .traits = LW_SPINS | LW_NUMA_AWARE | LW_TAIL_WORD,
	    .origin = "Dice and Kogan, EuroSys 2019; Linux series v13");
