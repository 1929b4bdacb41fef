/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A part of the contract that only resilient locks need, whose acquisitions can fail: the table of
 * the locks that a thread has, and deadlines. Kernels do not have it. The other parts are
 * operations.h and surroundings.h.
 */
#ifndef LW_RESILIENCE_H
#define LW_RESILIENCE_H

#include "operations.h"
#include "surroundings.h"

/*
 * lw_slot_held(slot)
 *	The table of held locks of a slot, a struct lw_held (held_locks.h), all zero at first.
 * lw_own_held()
 *	lw_slot_held() of our slot, if it stays ours while the table has an entry; else NULL. user:
 *	NULL until the thread has entered its slot once, and if it cannot keep the slot.
 * lw_deadline(milliseconds)
 *	The time that far from now, or the end of time if that is 0.
 * lw_is_past(deadline)
 *	Is it past? check: it may be past at any time, but not while a thread waits for itself or
 *	two threads wait for each other. So a check finds a deadlock that is left to the deadline.
 */
#if !defined(lw_slot_held) || !defined(lw_own_held)
#error "world_surroundings.h lacks an operation on tables of held locks"
#endif
#ifndef lw_deadline
#define lw_deadline(milliseconds) \
	((milliseconds) ? lw_timestamp() + (uint64_t)(milliseconds)*1000000 : UINT64_MAX)
#define lw_is_past(deadline) (lw_timestamp() > (deadline))
#endif

#endif
