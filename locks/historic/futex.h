/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mutex of the GNU C library, in its default kind: 16 bytes, all zero when unlocked. It
 * stands for the library's own where that cannot run, as in the simulator. Code: futex.c.
 */
#ifndef LW_FUTEX_H
#define LW_FUTEX_H

#include "operations.h"

struct lw_futex {
	lw_atomic(uint32_t) state;
	/* Records for other kinds of the mutex, which the holder keeps in the default kind too. */
	lw_atomic(uint32_t) users;
	lw_atomic(uintptr_t) owner;
};

LW_EXPORT void lw_futex_lock(struct lw_futex *lock);
LW_EXPORT bool lw_futex_trylock(struct lw_futex *lock);
LW_EXPORT void lw_futex_unlock(struct lw_futex *lock);

#endif
