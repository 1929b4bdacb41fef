/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations that only the historic locks need. They are declared here as those of
 * locks/contract/ are there. The simulator, the checker and the tests in user space implement them
 * in their world_historic.h; kernels and the library do not have them.
 */
#ifndef LW_HISTORIC_H
#define LW_HISTORIC_H

#include "operations.h"
#include "surroundings.h"

/* The variable in which a slot says for which lock it is parked. */
struct lw_slot_wanted {
	lw_atomic(uint32_t) what; /* 0 at first */
};

/*
 * lw_slot_wanted(slot)    the struct lw_slot_wanted of a slot
 * lw_runner()             a number for this CPU or thread, never 0
 * lw_is_running(runner)   does the CPU or thread with that number run now, rather than park or wait
 *                         for a CPU? user: unknown, so true. check: both are explored.
 * lw_should_yield()       does another thread wait for the CPU that we spin on? user: unknown, so
 *                         false. check: both are explored.
 * lw_await_eq_bounded(p, mask, value, budget)
 *                         lw_await_ne_bounded(), until (*p & mask) == value
 */
#include "world_historic.h"

/* Add to one named piece of a lock word, as lw_field_load() and its like. Returns the old value. */
#define lw_field_fetch_add(word, field, value, order) lw_fetch_add(&(word)->field, value, order)

#endif
