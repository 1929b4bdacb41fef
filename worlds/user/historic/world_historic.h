/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The operations of historic locks in user space. historic.h says what each of them means. */
#ifndef LW_WORLD_HISTORIC_H
#define LW_WORLD_HISTORIC_H

#include "slots.h"

extern struct lw_slot_wanted lw_user_wanted[] __attribute__((visibility("hidden")));

#define lw_slot_wanted(slot)  (&lw_user_wanted[slot])
#define lw_runner()	      ((uintptr_t)&lw_user_thread)
#define lw_is_running(runner) ((void)(runner), true)
#define lw_should_yield()     false
#define lw_await_eq_bounded(p, mask, value, budget) \
	LW_USER_AWAIT_BOUNDED(p, mask, == (value), budget)

#endif
