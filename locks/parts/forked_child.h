/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The child of a fork, in user space. Only the forking thread is there. Slots and lock words are as
 * other threads have left them, and these threads will not go on.
 *
 * The slots of threads that had no queue node in use become free. The others are retired: lock
 * words may still name their nodes, so no thread gets such a slot again, and its nodes are DEAD. A
 * thread that finds one before it in a queue is queue head.
 *
 * Nothing else runs yet, and threads that are made later see all this. So all accesses are relaxed.
 */
#ifndef LW_FORKED_CHILD_H
#define LW_FORKED_CHILD_H

#include "held_locks.h"
#include "mutex.h"
#include "parked_heads.h"
#include "reader_slots.h"

/*
 * The slot's thread is gone: it reads no lock and has none. Its announcements stay if any thread
 * has ever released a reader that another one had announced: counts of locks may stand against
 * them.
 */
static inline void lw_forked_end_reads(uint32_t slot)
{
	for (uint32_t i = 0; i < LW_HELD_PER_SLOT; i++)
		lw_store(&lw_slot_held(slot)->locks[i], 0, relaxed);
	for (uint32_t i = 0; i < LW_READS_PER_SLOT && !lw_load(&lw_slot_reads(1)->lent, relaxed);
	     i++)
		lw_store(&lw_slot_reads(slot)[i].of, 0, relaxed);
}

/* Retire the slot if its queue nodes were in use at the fork, and return whether they were. */
static inline bool lw_forked_retire(uint32_t slot)
{
	struct lw_node *nodes = lw_slot_nodes(slot);

	if (lw_load(&nodes->count, relaxed) == 0)
		return false;
	for (uint32_t i = 0; i < LW_NODES_PER_SLOT; i++)
		lw_store(&nodes[i].locked, LW_NODE_DEAD, relaxed);
	return true;
}

/*
 * Retire each slot up to `used`, or have it freed by free_slot(), which may be NULL. `own` is the
 * forking thread's slot. True if a slot was retired.
 */
static inline bool lw_forked_slots(uint32_t used, uint32_t own, void (*free_slot)(uint32_t slot))
{
	bool retired = false;

	for (uint32_t slot = used; slot > 0; slot--) {
		if (slot == own)
			continue;
		lw_forked_end_reads(slot);
		if (lw_forked_retire(slot))
			retired = true;
		else if (free_slot && lw_reads_none(lw_slot_reads(slot)))
			free_slot(slot);
	}
	return retired;
}

/*
 * Empty the table of parked heads: no thread is parked, so a holder need not search the table when
 * it releases its lock. The entry of a node in `own` stays: nodes of the forking thread, if it may
 * have interrupted its own wait, or NULL.
 */
static inline void lw_forked_empty_parked_heads(const struct lw_node *own)
{
	for (uint32_t i = 0; i < (uint32_t)1 << lw_parked_heads_bits(); i++) {
		struct lw_parked_head *entry = &lw_parked_heads()[i];
		union lw_word *lock = (union lw_word *)lw_load(&entry->lock, relaxed);
		const struct lw_node *node = lw_load(&entry->node, relaxed);

		if (!lock || (own && node >= own && node < own + LW_NODES_PER_SLOT))
			continue;
		lw_store(&entry->lock, 0, relaxed);
		/* parked: 1 -> 0; of a mutex, ASLEEP and OPEN: 1 -> 0 */
		lw_fetch_and(&lock->val, ~(LW_PARKED | LW_OPEN), relaxed);
	}
}

#endif
