/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The unfair byte lock of guests without paravirt spinlocks in Linux 4.2. It differs from tas in
 * one point: a waiter does not read before each compare-and-swap. Each attempt takes the cache line
 * from its owner, which may be the holder. States, promises and orders are those of tas.
 */
#ifndef LW_BYTE_H
#define LW_BYTE_H

#include "tas.h"

struct lw_byte {
	struct lw_tas tas;
};

static inline bool lw_byte_trylock(struct lw_byte *lock)
{
	return lw_tas_trylock(&lock->tas);
}

static inline void lw_byte_lock(struct lw_byte *lock)
{
	uint8_t free = 0;

	/* 0 -> 1 */
	while (!lw_try_cmpxchg(&lock->tas.locked, &free, 1, acquire)) {
		free = 0;
		lw_pause(1);
	}
}

static inline void lw_byte_unlock(struct lw_byte *lock)
{
	lw_tas_unlock(&lock->tas);
}

#endif
