/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queues of NUMA nodes: each is a queue node in the memory of its NUMA node. hq.c describes how
 * a lock uses them, and mutex.c does the same. And the part of a queue node that is for them alone.
 */
#ifndef LW_NODE_QUEUE_H
#define LW_NODE_QUEUE_H

#include "queue_node.h"

/* Each NUMA node has this number of queues. About as many locks can use them at once. */
#define LW_NODE_QUEUE_BITS 12
#define LW_NODE_QUEUES	   (1u << LW_NODE_QUEUE_BITS)

struct lw_hq_part {
	lw_atomic(uint64_t) history; /* HQ: hand-overs that led to this head */
	/* queue of a NUMA node: the lock it serves, and its last waiter */
	lw_atomic(uint64_t) waiters;
};

/* A lock uses the part of a queue node that is for one lock at a time. */
static inline struct lw_hq_part *lw_hq_part(struct lw_node *node)
{
	return (struct lw_hq_part *)node->own;
}

/* A queue of a NUMA node as the tail of the word: a slot number that no thread has. */
#define LW_FIRST_QUEUE_TAIL ((LW_MAX_SLOTS + 1) << LW_TAIL_SLOT_SHIFT)

static inline uint32_t lw_node_queue_tail(uint32_t numa_node)
{
	return LW_FIRST_QUEUE_TAIL + (numa_node << LW_TAIL_SHIFT);
}

/*
 * The lock's identity, scattered over 54 bits. The highest bits choose the queue, so the other bits
 * distinguish the locks that share it.
 */
#define LW_LOCK_KEY_BITS 54
#define LW_LOCK_ID_BITS	 (LW_LOCK_KEY_BITS - LW_NODE_QUEUE_BITS)

static inline uint64_t lw_lock_key(union lw_word *lock)
{
	return lw_scattered(lock) & (((uint64_t)1 << LW_LOCK_KEY_BITS) - 1);
}

static inline struct lw_node *lw_node_queue_of(union lw_word *lock, uint32_t numa_node)
{
	struct lw_node *queues = lw_node_queues(numa_node);

	return queues ? &queues[lw_lock_key(lock) >> LW_LOCK_ID_BITS] : NULL;
}

/* `waiters` of a queue that `lock` uses, whose last waiter has the tail `tail`. */
static inline uint64_t lw_node_queue_waiters(union lw_word *lock, uint32_t tail)
{
	uint64_t id = lw_lock_key(lock) & (((uint64_t)1 << LW_LOCK_ID_BITS) - 1);

	return id << 16 | tail >> LW_TAIL_SHIFT;
}

/* Do these two values of `waiters` belong to the same lock? */
static inline bool lw_node_queue_is_of(uint64_t waiters, uint64_t others)
{
	return !((waiters ^ others) >> 16);
}

/*
 * (lock,me) -> 0: free a queue that has no place in the word's queue. False if we, with the value
 * `self`, are not its last waiter.
 */
static inline bool lw_node_queue_release(struct lw_node *queue, uint64_t self)
{
	if (!lw_try_cmpxchg(&lw_hq_part(queue)->waiters, &self, 0, release))
		return false;
	lw_count(node_queues_released);
	return true;
}

/*
 * Join a queue with `node`, which is `self` there, in so many attempts. Returns the waiter before
 * us, or `node` if we are first, or NULL if we could not join: the queue may serve another lock.
 */
static inline struct lw_node *lw_node_queue_join(struct lw_node *queue, uint64_t self,
						 struct lw_node *node, uint32_t attempts)
{
	uint64_t old = lw_load(&lw_hq_part(queue)->waiters, relaxed);
	struct lw_node *prev;

	do {
		if (old && !lw_node_queue_is_of(old, self)) {
			lw_count(node_queue_conflicts);
			return NULL;
		}
		/* enter: 0 -> (lock,me), join: (lock,t) -> (lock,me) */
		if (!lw_try_cmpxchg(&lw_hq_part(queue)->waiters, &old, self, acq_rel))
			continue;
		if (!old) {
			lw_count(node_queues_taken);
			return node;
		}
		prev = lw_decode_tail((uint32_t)old << LW_TAIL_SHIFT);
		lw_store(&prev->next, node, release);
		return prev;
	} while (--attempts);
	return NULL;
}

/*
 * The queue's place has left the word's queue. Returns the next waiter, `next` if it is known, who
 * is to be leader; or NULL, and the queue is free.
 */
static inline struct lw_node *lw_node_queue_next(struct lw_node *queue, uint64_t self,
						 struct lw_node *node, struct lw_node *next)
{
	if (next || lw_node_queue_release(queue, self))
		return next;
	return lw_await_ne_soon(&node->next, ~(uintptr_t)0, 0, dependency);
}

/*
 * The place in the word's queue that `tail` stands for: a waiter's, or that of a NUMA node. NULL if
 * there are no queues of NUMA nodes: the tail is then that of a thread that did not survive a fork.
 */
static inline struct lw_node *lw_decode_place(union lw_word *lock, uint32_t tail)
{
	if (tail < LW_FIRST_QUEUE_TAIL)
		return lw_decode_tail(tail);
	return lw_node_queue_of(lock, (tail - LW_FIRST_QUEUE_TAIL) >> LW_TAIL_SHIFT);
}

#endif
