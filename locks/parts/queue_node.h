/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue nodes of the queued locks, and what waiters do with them: wait for the
 * head's role and hand it over (the MCS lock of 1991).
 *
 * A queue node belongs to its waiter from the exchange of the tail until the
 * waiter has handed over. The tail's exchange releases the node's
 * initialisation; the link to the predecessor and the hand-off are a release
 * and acquire pair each, so that a head owns all that its predecessors wrote to
 * the queue.
 */
#ifndef LW_QUEUE_NODE_H
#define LW_QUEUE_NODE_H

#include "lock_word.h"
#include "surroundings.h"

/* In `locked` of a queue node; CNA stores larger values, halting.h has states of its own. */
#define LW_NODE_WAITING 0
#define LW_NODE_HEAD	1

/* How many locks at a time can have their waiters queue by NUMA node, more or less. */
#define LW_NODE_QUEUE_BITS 12
#define LW_NODE_QUEUES	   (1u << LW_NODE_QUEUE_BITS)

struct lw_node {
	lw_atomic(struct lw_node *) next;
	lw_atomic(uint32_t) locked; /* LW_NODE_WAITING until handed over */
	lw_atomic(uint32_t) count;  /* nodes of this slot in use; kept in its first node */
	lw_atomic(uint32_t) tail;   /* this node as the tail of a lock word, where needed */
	/* the waiter's, where they are told apart; CNA: effective, the one it is preferred as */
	lw_atomic(uint16_t) numa_node;

	/* The rest is for one lock at a time, and each kind has its own use for it. */
	union {
		struct { /* CNA */
			lw_atomic(uint16_t) real_numa_node;
			/* of the secondary queue's last node */
			lw_atomic(struct lw_node *) secondary_head;
			/* lw_clock() when the secondary queue was begun */
			lw_atomic(uint64_t) secondary_since;
		};
		struct {			     /* HQ */
			lw_atomic(uint64_t) history; /* of the hand-offs that led here */
			/* of a NUMA node's queue: for which lock, who is last */
			lw_atomic(uint64_t) waiters;
		};
		struct {			   /* waiters that halt */
			lw_atomic(uint32_t) place; /* how many are before it, about */
			/* how many in a row, up to it, have been put before others */
			lw_atomic(uint32_t) run;
			lw_atomic(struct lw_node *) prev;
			lw_atomic(uint64_t) kicked_at; /* lw_timestamp() */
		};
	};
} lw_aligned(64);

/* Gives what was handed over. */
static inline uint32_t lw_mcs_wait(struct lw_node *node)
{
	return lw_await_ne(&node->locked, ~0u, LW_NODE_WAITING, acquire);
}

static inline void lw_mcs_handoff(struct lw_node *next, uint32_t value)
{
	lw_store(&next->locked, value, release);
}

/* (p,*,*) -> (tail,*,*); gives p, whom to queue behind. */
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

static inline struct lw_node *lw_decode_tail(uint32_t tail)
{
	return &lw_slot_nodes(lw_tail_slot(tail))[tail >> LW_TAIL_SHIFT & LW_TAIL_INDEX_MASK];
}

#endif
