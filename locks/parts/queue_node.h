/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue nodes, and the two steps that every queue of them has: wait for the role of queue head, and
 * hand it over (the MCS lock of 1991).
 *
 * A queue node belongs to its waiter from the exchange of the tail until the waiter has handed over
 * the head's role. Orders: the exchange of the tail releases the initialisation of the node. The
 * link to the predecessor and the hand-over are a release and acquire pair each, so that a queue
 * head sees all that its predecessors wrote to the queue.
 */
#ifndef LW_QUEUE_NODE_H
#define LW_QUEUE_NODE_H

#include "lock_word.h"
#include "surroundings.h"

/*
 * Values of `locked`. Each lock has the first two. The others are those of the locks whose waiters
 * park, as parking.h describes. hq.c has one of its own, and CNA stores tails of
 * the word there.
 */
#define LW_NODE_WAITING	    0
#define LW_NODE_HEAD	    1
#define LW_NODE_PARKED	    2
#define LW_NODE_PARKED_HEAD 3
#define LW_NODE_ABANDONED   4
#define LW_NODE_DEAD	    5 /* user space, all locks: its thread did not survive a fork */
#define LW_NODE_LEADER	    6

/* Above the state, the mutex has the run of hand-overs within a NUMA node that led to this head. */
#define LW_NODE_STATE	  0xffu
#define LW_NODE_RUN_SHIFT 8
#define LW_NODE_TO_HEAD	  (LW_NODE_PARKED_HEAD ^ LW_NODE_HEAD) /* changes one into the other */

struct lw_node {
	lw_atomic(struct lw_node *) next;
	lw_atomic(uint32_t) locked; /* LW_NODE_WAITING until the head's role is handed over */
	lw_atomic(uint32_t) count;  /* nodes of this slot in use; kept in its first node */
	lw_atomic(uint32_t) tail;   /* this node as the tail of a lock word, where needed */
	/* NUMA node of the waiter; CNA: its effective node, which differs for priority waiters */
	lw_atomic(uint16_t) numa_node;

	/* The rest is for one lock at a time. Each family of locks has its own use for it. */
	union {
		struct { /* CNA */
			lw_atomic(uint16_t) real_numa_node;
			/* first node of the secondary queue; valid in its last node */
			lw_atomic(struct lw_node *) secondary_head;
			/* lw_clock() after which it is the secondary queue's turn */
			lw_atomic(uint64_t) secondary_until;
		};
		struct {			   /* parking.h */
			lw_atomic(uint32_t) place; /* approximate number of predecessors */
			lw_atomic(struct lw_node *) prev;
			lw_atomic(uint64_t) kicked_at; /* lw_timestamp() */
		};
		uint64_t own[2]; /* HQ and the mutex: node_queue.h */
	};
} lw_aligned(64);

/* Initialise what each waiter's node has, before another thread can find the node. */
static inline void lw_node_init(struct lw_node *node)
{
	lw_store(&node->next, NULL, relaxed);
	lw_store(&node->locked, LW_NODE_WAITING, relaxed);
}

/* Wait until the head's role is handed over. Returns the value that came with it. */
static inline uint32_t lw_mcs_wait(struct lw_node *node)
{
	return lw_await_ne(&node->locked, ~0u, LW_NODE_WAITING, acquire);
}

/* Hand over the head's role, with `value`, which is not LW_NODE_WAITING. */
static inline void lw_mcs_hand_over(struct lw_node *next, uint32_t value)
{
	lw_store(&next->locked, value, release);
}

/* (p,*,*) -> (tail,*,*): join the queue. Returns p, the predecessor's tail, or 0. */
static inline uint32_t lw_word_xchg_tail(union lw_word *lock, uint32_t tail)
{
	return (uint32_t)lw_field_xchg(lock, tail, (uint16_t)(tail >> LW_TAIL_SHIFT), acq_rel)
	       << LW_TAIL_SHIFT;
}

static inline uint32_t lw_encode_tail(uint32_t slot, uint32_t index)
{
	return slot << LW_TAIL_SLOT_SHIFT | index << LW_TAIL_SHIFT;
}

static inline uint32_t lw_tail_slot(uint32_t tail)
{
	return tail >> LW_TAIL_SLOT_SHIFT;
}

static inline uint32_t lw_tail_index(uint32_t tail)
{
	return tail >> LW_TAIL_SHIFT & LW_TAIL_INDEX_MASK;
}

static inline struct lw_node *lw_decode_tail(uint32_t tail)
{
	return &lw_slot_nodes(lw_tail_slot(tail))[lw_tail_index(tail)];
}

/* Polls of the own node between two looks at the predecessor's. */
#define LW_PREV_CHECK 256

/*
 * Poll our node for so many times. True if its state has changed. False: park, since polling has
 * brought nothing, or since our predecessor has parked. That is a hint: its node may belong to
 * another wait by now. NULL: do not look.
 */
static inline bool lw_node_poll(struct lw_node *node, struct lw_node *prev, uint32_t polls)
{
	do {
		uint32_t now = prev && polls > LW_PREV_CHECK ? LW_PREV_CHECK : polls;

		if (lw_await_ne_bounded(&node->locked, ~0u, LW_NODE_WAITING, now) !=
		    LW_NODE_WAITING)
			return true;
		if (prev) {
			uint32_t before = lw_hint(&prev->locked, LW_NODE_ABANDONED + 1);

			if (before == LW_NODE_PARKED || before == LW_NODE_PARKED_HEAD) {
				lw_count(halts_early);
				return false;
			}
		}
		polls -= now;
	} while (polls);
	return false;
}

#endif
