/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of historic locks in the simulator. historic.h says what each of them means. */
#ifndef LW_WORLD_HISTORIC_H
#define LW_WORLD_HISTORIC_H

#include "world_surroundings.h"

struct lw_slot_wanted;

struct lw_slot_wanted *lw_sim_slot_wanted(uint32_t slot);
bool lw_sim_is_running(uint32_t runner);
bool lw_sim_should_yield(void);

#define lw_slot_wanted(slot)  lw_sim_slot_wanted(slot)
#define lw_runner()	      ((uintptr_t)lw_sim_slot())
#define lw_is_running(runner) lw_sim_is_running((uint32_t)(runner))
#define lw_should_yield()     lw_sim_should_yield()
#define lw_await_eq_bounded(p, mask, value, budget) \
	LW_SIM_AWAIT_BOUNDED(p, mask, value, true, budget)

#endif
