/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of surroundings.h that a world need not define. The comment of each block names
 * the worlds that define it.
 */
#ifndef LW_WORLD_SURROUNDINGS_DEFAULTS_H
#define LW_WORLD_SURROUNDINGS_DEFAULTS_H

/* user, check */
#ifndef lw_world_limits_exist
#define lw_world_limits_exist() false
#endif

/* user */
#ifndef lw_world_slot_may_be_abandoned
#define lw_world_slot_may_be_abandoned() true
#endif

/* check */
#ifndef lw_world_hint
static inline uint32_t lw_hint_below(uint32_t n, uint32_t seen)
{
	return seen < n ? seen : n - 1;
}
#define lw_world_hint(p, n) lw_hint_below(n, lw_world_load(p, relaxed))
#endif

#endif
