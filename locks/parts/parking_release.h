/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unlocking while the queue head is parked. lw_word_release() has returned true, the word is
 * (*,*,2), and no thread can acquire the lock. This removes the head from the table, releases the
 * lock, and then wakes the head, and with it some waiters ahead of their turn. Their nodes are read
 * before the release only, because they may be in another use after it.
 */
#ifndef LW_PARKING_RELEASE_H
#define LW_PARKING_RELEASE_H

#include "parking_queue.h"

/* The greatest number of waiters that are woken ahead of their turn. */
#define LW_WAKE_AHEAD_MAX 8

/* The first parked waiter among the few behind `node`. No thread can acquire the lock meanwhile. */
static inline struct lw_node *lw_next_parked(struct lw_node *node)
{
	for (uint32_t steps = 0; steps < LW_WAKE_AHEAD_MAX; steps++) {
		node = lw_load(&node->next, dependency);
		if (!node || lw_load(&node->locked, relaxed) == LW_NODE_PARKED)
			return node;
	}
	return NULL;
}

static lw_always_inline void lw_parking_unlock_slow(union lw_word *lock,
						    const struct lw_parking_policy *policy)
{
	struct lw_node *woken[1 + LW_WAKE_AHEAD_MAX];
	uint32_t slots[1 + LW_WAKE_AHEAD_MAX], count = 0;
	struct lw_node *head = lw_parked_take(lock);

	if (head) {
		lw_wake_begins(head, policy);
		/* PARKED_HEAD -> HEAD */
		lw_store(&head->locked, LW_NODE_HEAD, release);
		lw_count(kicks_at_unlock);
		woken[0] = head;
		count = 1;
		while (count <= policy->parking.wake_ahead && count <= LW_WAKE_AHEAD_MAX) {
			struct lw_node *node = lw_next_parked(woken[count - 1]);

			if (!node)
				break;
			woken[count++] = node;
			lw_count(kicks_ahead);
		}
		for (uint32_t i = 0; i < count; i++)
			slots[i] = lw_tail_slot(lw_load(&woken[i]->tail, relaxed));
	}
	/* (*,*,2) -> (*,*,0) */
	lw_field_store(lock, locked, 0, release);
	for (uint32_t i = 0; i < count; i++)
		lw_wake(woken[i], slots[i], policy);
}

#endif
