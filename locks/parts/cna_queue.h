/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two queues of cna and cna13. cna.c explains them. The queue head prefers waiters of its NUMA
 * node: it moves others to the secondary queue, and hands that queue over with its role.
 *
 * A lock says in a lw_secondary_policy how its secondary queue is linked, and when it is too old.
 */
#ifndef LW_CNA_QUEUE_H
#define LW_CNA_QUEUE_H

#include "fifo_queue.h"

/* The effective NUMA node of a priority waiter, which is never moved. */
#define LW_CNA_PRIORITY 0xffff
/* With shuffle reduction, one hand-over in this number searches the queue. */
#define LW_CNA_SHUFFLE_ODDS 128

/* A compile-time constant, so that every call through it is a direct one. */
struct lw_secondary_policy {
	/*
	 * Add a waiter to the secondary queue of `head`, which ends with `tail2`. NULL: it is
	 * empty, and lw_cna_begin() notes when it began.
	 */
	void (*append)(struct lw_node *head, struct lw_node *tail2, struct lw_node *added);
	/*
	 * Let the secondary queue that ends with `tail2` continue with `next`. Returns its first
	 * waiter.
	 */
	struct lw_node *(*splice)(struct lw_node *tail2, struct lw_node *next);
	/*
	 * If the word is still `val`, (our tail,0,0), make it (tail2,0,1). Returns the first waiter
	 * of the secondary queue, which is the primary queue then, or NULL.
	 */
	struct lw_node *(*try_promote)(union lw_word *lock, uint32_t val, uint32_t tail2);
	/* Must the secondary queue go first? Both times are in nanoseconds. */
	bool (*is_too_old)(uint64_t age, uint64_t threshold);
};

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

static inline void lw_cna_begin(struct lw_node *head)
{
	lw_store(&head->secondary_since, lw_clock(), relaxed);
}

/* head -> next -> after  becomes  head -> after; `next` becomes the last of the secondary queue. */
static lw_always_inline void lw_cna_move(struct lw_node *head, struct lw_node *next,
					 struct lw_node *after,
					 const struct lw_secondary_policy *secondary)
{
	uint32_t locked = lw_load(&head->locked, relaxed);
	struct lw_node *tail2 = lw_cna_has_secondary(locked) ? lw_decode_tail(locked) : NULL;

	lw_store(&head->next, after, relaxed);
	secondary->append(head, tail2, next);
	lw_store(&head->locked, lw_load(&next->tail, relaxed), relaxed);
	lw_count(secondary_moves);
}

/*
 * Prefer our NUMA node: move the successor to the secondary queue if it is of another node and not
 * the last, and let the new successor inherit the preference. False if there is no successor yet.
 */
static lw_always_inline bool lw_cna_reorder(struct lw_node *head,
					    const struct lw_secondary_policy *secondary)
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
			lw_cna_move(head, next, after, secondary);
			next = after;
		}
		lw_store(&next->numa_node, preferred, relaxed);
	}
	return true;
}

enum lw_cna_plan {
	LW_CNA_KEEP,
	LW_CNA_FLUSH,
	LW_CNA_RETRY, /* there was no successor yet: reorder at the hand-over */
};

static lw_always_inline uint32_t lw_cna_wait_head(struct lw_node *head,
						  const struct lw_secondary_policy *secondary)
{
	if (lw_cna_has_secondary(lw_load(&head->locked, relaxed))) {
		uint64_t age = lw_clock() - lw_load(&head->secondary_since, relaxed);

		if (!lw_numa_aware(cna) ||
		    secondary->is_too_old(age, (uint64_t)lw_tunable(numa_threshold_ms) * 1000000))
			return LW_CNA_FLUSH;
	} else {
		if (!lw_numa_aware(cna))
			return LW_CNA_KEEP;
		if (lw_tunable(shuffle_reduction) && !lw_chance(1, LW_CNA_SHUFFLE_ODDS)) {
			lw_count(shuffles_skipped);
			return LW_CNA_KEEP;
		}
	}
	return lw_cna_reorder(head, secondary) ? LW_CNA_KEEP : LW_CNA_RETRY;
}

/* Hand over the head's role, with `value` for `locked` of the successor. */
static inline void lw_cna_pass(struct lw_node *head, struct lw_node *next, uint32_t value)
{
	if (lw_load(&next->real_numa_node, relaxed) == lw_load(&head->real_numa_node, relaxed))
		lw_count(local_handoffs);
	else
		lw_count(remote_handoffs);
	lw_mcs_handoff(next, value);
}

static lw_always_inline bool lw_cna_try_clear_tail(union lw_word *lock, uint32_t val,
						   struct lw_node *head,
						   const struct lw_secondary_policy *secondary)
{
	uint32_t locked = lw_load(&head->locked, relaxed);
	struct lw_node *head2;

	if (!lw_cna_has_secondary(locked))
		/* (tail,0,0) -> (0,0,1) */
		return lw_try_cmpxchg(&lock->val, &val, LW_LOCKED, relaxed);

	head2 = secondary->try_promote(lock, val, locked);
	if (!head2)
		return false;
	lw_count(empty_flushes);
	lw_cna_pass(head, head2, LW_NODE_HEAD);
	return true;
}

static lw_always_inline void lw_cna_handoff(struct lw_node *head, struct lw_node *next,
					    uint32_t plan,
					    const struct lw_secondary_policy *secondary)
{
	uint32_t locked = lw_load(&head->locked, relaxed);

	if (plan == LW_CNA_FLUSH) {
		lw_count(threshold_flushes);
		lw_cna_pass(head, secondary->splice(lw_decode_tail(locked), next), LW_NODE_HEAD);
		return;
	}

	if (plan == LW_CNA_RETRY)
		lw_cna_reorder(head, secondary);
	/* Read again: `next` may have been moved. */
	next = lw_load(&head->next, dependency);
	locked = lw_load(&head->locked, relaxed);
	if (lw_cna_has_secondary(locked)) {
		lw_store(&next->secondary_since, lw_load(&head->secondary_since, relaxed), relaxed);
		lw_cna_pass(head, next, locked);
	} else {
		lw_cna_pass(head, next, LW_NODE_HEAD);
	}
}

/* Define lw_<id>_lock_slow(), which takes struct lw_<id>, from lw_<id>_secondary_policy. */
#define LW_DEFINE_CNA_LOCK(id)                                                                \
	static inline uint32_t lw_##id##_fifo_wait_head(struct lw_node *head, uint32_t prev)  \
	{                                                                                     \
		(void)prev;                                                                   \
		return lw_cna_wait_head(head, &lw_##id##_secondary_policy);                   \
	}                                                                                     \
	static inline bool lw_##id##_fifo_try_clear_tail(union lw_word *lock, uint32_t val,   \
							 struct lw_node *head)                \
	{                                                                                     \
		return lw_cna_try_clear_tail(lock, val, head, &lw_##id##_secondary_policy);   \
	}                                                                                     \
	static inline void lw_##id##_fifo_handoff(struct lw_node *head, struct lw_node *next, \
						  uint32_t plan)                              \
	{                                                                                     \
		lw_cna_handoff(head, next, plan, &lw_##id##_secondary_policy);                \
	}                                                                                     \
	static const struct lw_fifo_policy lw_##id##_fifo_policy = {                          \
		.init_node = lw_cna_init_node,                                                \
		.wait_head = lw_##id##_fifo_wait_head,                                        \
		.try_clear_tail = lw_##id##_fifo_try_clear_tail,                              \
		.handoff = lw_##id##_fifo_handoff,                                            \
	};                                                                                    \
	LW_DEFINE_FIFO_LOCK(id)

#endif
