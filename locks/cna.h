/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CNA, the compact NUMA-aware lock: 4 bytes, all zero when unlocked. Slow path: cna.c. Locking is
 * an acquire operation, unlocking a release operation.
 */
#ifndef LW_CNA_H
#define LW_CNA_H

#include "lock_word.h"

struct lw_cna {
	union lw_word word;
};

/* The word was seen as `val`, not free. */
LW_EXPORT void lw_cna_lock_slow(struct lw_cna *lock, uint32_t val);

LW_DEFINE_QUEUED_FAST_PATH(cna)

#endif
