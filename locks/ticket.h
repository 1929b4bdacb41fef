/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ticket lock: draw the next number, and wait until it is served. The word is (next, serving).
 *
 *   (n, n) free -- draw --> (n + 1, n) held by n -- unlock --> (n + 1, n + 1) free
 *   (m, n) held -- draw --> (m + 1, n)  m waits until serving is m
 *
 * All waiters poll the same cache line, so each hand-off costs as many transfers of it as there
 * are waiters. At most 65,535 threads, the holder included.
 *
 * Promises: mutual exclusion; FIFO.
 *
 * Orders: drawing a number, and the poll that sees it served, acquire; unlocking releases.
 */
#ifndef LW_TICKET_H
#define LW_TICKET_H

#include "operations.h"

#define LW_TICKET_NEXT (1u << 16)

union lw_ticket {
	lw_atomic(uint32_t) val;
	struct {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		lw_atomic(uint16_t) serving;
		lw_atomic(uint16_t) next;
#else
		lw_atomic(uint16_t) next;
		lw_atomic(uint16_t) serving;
#endif
	};
};

static inline bool lw_ticket_trylock(union lw_ticket *lock)
{
	uint32_t val = lw_load(&lock->val, relaxed);

	/* (n, n) -> (n + 1, n) */
	return val >> 16 == (val & 0xffff) &&
	       lw_try_cmpxchg(&lock->val, &val, val + LW_TICKET_NEXT, acquire);
}

static inline void lw_ticket_lock(union lw_ticket *lock)
{
	/* (next, serving) -> (next + 1, serving) */
	uint32_t val = lw_fetch_add(&lock->val, LW_TICKET_NEXT, acquire);
	uint32_t mine = val >> 16;

	if (mine != (val & 0xffff))
		lw_await_eq(&lock->val, 0xffffu, mine, acquire);
}

static inline void lw_ticket_unlock(union lw_ticket *lock)
{
	uint16_t serving = lw_field_load(lock, serving, relaxed);

	/* (*, n) -> (*, n + 1) */
	lw_field_store(lock, serving, (uint16_t)(serving + 1), release);
}

#endif
