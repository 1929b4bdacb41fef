// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The paravirt queued spinlock as it was in Linux 4.2, before the improvements of pv (pv.c). No
 * thread steals, and no contender waits with the pending bit. The lock is strictly FIFO among
 * queued waiters, so it is idle while the next waiter wakes up. A waiter that has halted is kicked
 * twice: when it becomes queue head, and, if it has halted again, to acquire the lock.
 *
 *   free    (*,0,0) -- an arriving thread, if nobody queues; the queue head  --> held (*,0,1)
 *   parked  (*,0,1) -- unlock: the queue head is kicked --> (*,0,2)          --> free (*,0,0)
 *
 * Promises: mutual exclusion; FIFO among queued waiters; no waiter is lost; correct without a free
 * queue node.
 *
 * Orders: those of stealing.h.
 */
#include "lock_type.h"
#include "stealing.h"
#include "pv42.h"

/* Wait behind others until we are queue head. */
static void lw_pv42_wait(union lw_word *lock, struct lw_node *node, uint32_t tail)
{
	while (lw_await_ne_bounded(&node->locked, ~0u, LW_NODE_WAITING,
				   (uint32_t)lw_tunable(pv42_spin)) == LW_NODE_WAITING)
		if (lw_queue_sleep(node, tail, NULL, true) == LW_WAIT_HEAD)
			break;
	lw_head_woken(lock, node, 0);
}

/* Wait as queue head until we have acquired the lock, and hand over the head's role. */
static void lw_pv42_head(union lw_word *lock, struct lw_node *node, uint32_t tail)
{
	for (;;) {
		uint32_t val = lw_poll_lock(lock, (uint32_t)lw_tunable(pv42_spin));

		if (!(val & LW_LOCKED_MASK)) {
			if (lw_head_acquire(lock, node, tail, val, LW_WAKE_NOW, false))
				return;
		} else if (lw_head_enter_table(lock, node, 0)) {
			lw_head_sleep(lock, node, 0, NULL);
		}
	}
}

void lw_pv42_lock_slow(struct lw_pv42 *pv42)
{
	union lw_word *lock = &pv42->word;
	struct lw_own_node own;

	if (!lw_node_take(NULL, &own)) {
		lw_spin_nodeless(lock);
		return;
	}
	if (lw_queue_join(lock, own.node, own.tail))
		lw_pv42_wait(lock, own.node, own.tail);
	lw_pv42_head(lock, own.node, own.tail);
	lw_count(queued_acquisitions);
	lw_node_return(&own);
}

void lw_pv42_unlock_slow(struct lw_pv42 *pv42)
{
	lw_unlock_parked(&pv42->word);
}

LW_DESCRIBE(pv42, struct lw_pv42, .summary = "paravirt queued spinlock as it was in Linux 4.2",
	    .traits = LW_FIFO | LW_TAIL_WORD | LW_HISTORIC, .tunables = "pv42_ pv_latencies",
	    .origin = "Long and Zijlstra, Linux 4.2");
