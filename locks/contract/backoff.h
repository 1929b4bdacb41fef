/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lw_await_ne_backoff() for worlds that poll in real time. */
#ifndef LW_BACKOFF_H
#define LW_BACKOFF_H

/* `longest`: the most pauses between two polls. */
#define LW_AWAIT_NE_BACKOFF(p, mask, value, budget, longest)                          \
	__extension__({                                                               \
		unsigned int lw_left = (budget), lw_gap = 1;                          \
		__typeof__((p)->lw_raw) lw_seen;                                      \
		while (lw_seen = lw_load(p, relaxed),                                 \
		       ((uintptr_t)lw_seen & (mask)) == (value) && lw_left) {         \
			unsigned int lw_pauses = lw_gap < lw_left ? lw_gap : lw_left; \
			lw_left -= lw_pauses;                                         \
			if (lw_gap < (longest))                                       \
				lw_gap *= 2;                                          \
			lw_pause(lw_pauses);                                          \
		}                                                                     \
		lw_seen;                                                              \
	})

#endif
