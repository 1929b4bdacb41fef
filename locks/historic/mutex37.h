/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mutex of Linux 3.7, which counts, and mutex310, the same with the "read first" of Linux 3.10:
 * 32 bytes. For comparison. Code: mutex37.c.
 */
#ifndef LW_MUTEX37_H
#define LW_MUTEX37_H

#include "ticket.h"

struct lw_node;

struct lw_count_mutex {
	/* as int32_t: 1 free, 0 held, negative held with waiters */
	lw_atomic(uint32_t) count;
	union lw_ticket wait_lock;
	lw_atomic(uintptr_t) owner; /* lw_runner() of the holder; 0: none, or not set yet */
	/* The waiters in order, protected by wait_lock. */
	lw_atomic(struct lw_node *) first;
	lw_atomic(struct lw_node *) last;
};

struct lw_mutex37 {
	struct lw_count_mutex mutex;
};

struct lw_mutex310 {
	struct lw_count_mutex mutex;
};

LW_EXPORT void lw_mutex37_lock(struct lw_mutex37 *lock);
LW_EXPORT bool lw_mutex37_trylock(struct lw_mutex37 *lock);
LW_EXPORT void lw_mutex37_unlock(struct lw_mutex37 *lock);
LW_EXPORT void lw_mutex310_lock(struct lw_mutex310 *lock);
LW_EXPORT bool lw_mutex310_trylock(struct lw_mutex310 *lock);
LW_EXPORT void lw_mutex310_unlock(struct lw_mutex310 *lock);

#endif
