/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lw_hint() for worlds that read the memory, even if it has another use by now. */
#ifndef LW_HINT_H
#define LW_HINT_H

#include "world.h"

static inline uint32_t lw_hint_below(uint32_t n, uint32_t seen)
{
	return seen < n ? seen : n - 1;
}

#endif
