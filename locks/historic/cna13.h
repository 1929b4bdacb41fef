/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CNA as version 13 of its series for Linux has it: 4 bytes, all zero when unlocked. For comparison
 * with cna. Slow path: cna13.c.
 */
#ifndef LW_CNA13_H
#define LW_CNA13_H

#include "lock_word.h"

struct lw_cna13 {
	union lw_word word;
};

/* The word was seen as `val`, not free. */
LW_EXPORT void lw_cna13_lock_slow(struct lw_cna13 *lock, uint32_t val);

LW_DEFINE_QUEUED_FAST_PATH(cna13)

#endif
