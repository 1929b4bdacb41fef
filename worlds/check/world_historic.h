/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of historic locks in the model checker. historic.h says what each of them means.
 */
#ifndef LW_WORLD_HISTORIC_H
#define LW_WORLD_HISTORIC_H

#include "world_surroundings.h"

struct lw_slot_wanted;

struct lw_slot_wanted *lw_check_slot_wanted(uint32_t slot);

#define lw_slot_wanted(slot) lw_check_slot_wanted(slot)
/* An address in the thread's own memory, which the engine renames when it swaps two threads. */
#define lw_runner()	      ((uintptr_t)lw_check_lent_node(0))
#define lw_is_running(runner) ((void)(runner), lw_choose(2))
#define lw_should_yield()     lw_choose(2)
#define lw_await_eq_bounded(p, mask, value, budget) \
	((void)(budget), LW_CHECK_ACCESS(AWAIT_EQ_BOUNDED, p, mask, value, relaxed))

#endif
