/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resilient locks with a deliberate mistake each. The mistakes are those that the field found in
 * Linux' rqspinlock after its release, made again in our lock.
 */
#ifndef LW_RESILIENT_MUTANTS_H
#define LW_RESILIENT_MUTANTS_H

#include "lock_type.h"
#include "rqspinlock.h"

struct lw_resilient_lock {
	const struct lw_lock_type *type;
	int (*acquire)(struct lw_rqspinlock *lock);
	void (*unlock)(struct lw_rqspinlock *lock);
};

/* The resilient locks: first the one without a mistake. */
extern const struct lw_resilient_lock lw_resilient_locks[];
/* The types of those with a mistake; NULL-terminated. */
extern const struct lw_lock_type *const lw_resilient_mutant_types[];

#endif
