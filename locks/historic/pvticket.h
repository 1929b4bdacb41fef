/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The paravirt ticket lock of Linux 4.1: a ticket lock whose waiters halt. Tickets are even
 * numbers; the lowest bit of the served one says that a waiter may be halted. At most 32,767
 * threads may wait at once. Slow path: pvticket.c.
 */
#ifndef LW_PVTICKET_H
#define LW_PVTICKET_H

#include "historic.h"
#include "ticket.h"

#define LW_PVTICKET_SLOW    1u
#define LW_PVTICKET_STEP    2u
#define LW_PVTICKET_SERVING 0xfffeu
#define LW_PVTICKET_NEXT    (LW_PVTICKET_STEP << 16)

struct lw_pvticket {
	union lw_ticket tickets;
};

LW_EXPORT void lw_pvticket_lock_slow(struct lw_pvticket *lock, uint32_t mine);
LW_EXPORT void lw_pvticket_unlock_slow(struct lw_pvticket *lock, uint32_t serving);

static inline bool lw_pvticket_trylock(struct lw_pvticket *lock)
{
	uint32_t val = lw_load(&lock->tickets.val, relaxed);

	/* (n, n) -> (n + 2, n) */
	return val >> 16 == (val & 0xffff) &&
	       lw_try_cmpxchg(&lock->tickets.val, &val, val + LW_PVTICKET_NEXT, acquire);
}

static inline void lw_pvticket_lock(struct lw_pvticket *lock)
{
	/* (next, serving) -> (next + 2, serving) */
	uint32_t val = lw_fetch_add(&lock->tickets.val, LW_PVTICKET_NEXT, acquire);

	if (lw_unlikely(val >> 16 != (val & 0xffff)))
		lw_pvticket_lock_slow(lock, val >> 16);
}

static inline void lw_pvticket_unlock(struct lw_pvticket *lock)
{
	/* (*, n) -> (*, n + 2); acquire: the slot of a halted waiter */
	uint16_t serving = lw_field_fetch_add(&lock->tickets, serving, LW_PVTICKET_STEP, acq_rel);

	if (lw_unlikely(serving & LW_PVTICKET_SLOW))
		lw_pvticket_unlock_slow(lock, (serving + LW_PVTICKET_STEP) & LW_PVTICKET_SERVING);
}

#endif
