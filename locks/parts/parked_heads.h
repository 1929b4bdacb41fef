/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of parked heads. It maps a lock to the queue node of its parked queue head. It is a
 * bounded hash table with linear probing. A lock has one queue head, so it has one entry at most.
 *
 * An entry belongs to its lock from lw_parked_insert() to lw_parked_remove(). The lock word decides
 * which thread removes it (parking.h), so entries need no lock of their own.
 *
 * Orders: an entry is taken by a compare-and-swap that acquires and freed by a store that releases.
 * So its last owner has read `node` before the next owner writes it. Without either order, a thread
 * that unlocks could wake the head of another lock, and not its own.
 *
 * All else is relaxed. The search for an entry comes after its insertion by the orders of `parked`
 * (parking.h). The next entry of the same lock comes after the removal of this one by the
 * orders of the head's role (parking.h): only the queue head, or the holder that makes it
 * head, inserts one, and a head is out of the table before it hands over its role.
 */
#ifndef LW_PARKED_HEADS_H
#define LW_PARKED_HEADS_H

#include "queue_node.h"

struct lw_parked_head {
	lw_atomic(uintptr_t) lock; /* 0: free */
	lw_atomic(struct lw_node *) node;
	/* Of any lock that is looked for here first: since when its head waits. Advice. */
	lw_atomic(uint64_t) since;
};

/* The entry that the search for `lock` examines after `nth` others. */
static inline struct lw_parked_head *lw_parked_probe(union lw_word *lock, uint32_t nth)
{
	uint32_t bits = lw_parked_heads_bits();

	return &lw_parked_heads()[((lw_scattered(lock) >> (64 - bits)) + nth) &
				  (((uint32_t)1 << bits) - 1)];
}

/* The entry that is looked for first. Its `since` is that of this lock, or of another. */
static inline struct lw_parked_head *lw_parked_first(union lw_word *lock)
{
	return lw_parked_probe(lock, 0);
}

/* Insert an entry for a lock. NULL if the table is full. */
static inline struct lw_parked_head *lw_parked_insert(union lw_word *lock, struct lw_node *node)
{
	uint32_t size = (uint32_t)1 << lw_parked_heads_bits();

	for (uint32_t nth = 0; nth < size; nth++) {
		struct lw_parked_head *entry = lw_parked_probe(lock, nth);
		uintptr_t none = 0;

		/* free -> the lock's; acquire: the entry's last owner has read the node */
		if (lw_try_cmpxchg(&entry->lock, &none, (uintptr_t)lock, acquire)) {
			lw_store(&entry->node, node, relaxed);
			lw_count(table_operations);
			lw_count_by(table_hops, nth);
			return entry;
		}
	}
	return NULL;
}

static inline struct lw_node *lw_parked_remove(struct lw_parked_head *entry)
{
	struct lw_node *node = lw_load(&entry->node, relaxed);

	/* the lock's -> free */
	lw_store(&entry->lock, 0, release);
	return node;
}

/*
 * Find and remove the entry of a lock. NULL only in the child of a fork, whose table has been
 * emptied.
 */
static inline struct lw_node *lw_parked_take(union lw_word *lock)
{
	uint32_t size = (uint32_t)1 << lw_parked_heads_bits();

	for (uint32_t nth = 0; nth < size; nth++) {
		struct lw_parked_head *entry = lw_parked_probe(lock, nth);

		if (lw_load(&entry->lock, relaxed) == (uintptr_t)lock) {
			lw_count(table_operations);
			lw_count_by(table_hops, nth);
			return lw_parked_remove(entry);
		}
	}
	return NULL;
}

#endif
