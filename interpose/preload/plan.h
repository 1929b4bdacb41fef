/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The plan that LOCKWORKS_PLAN names: it says which locks serve which mutexes and rwlocks of the
 * process, by the address of the mutex, or of the call that initialised it or locked it first.
 * glibc serves all others. docs/reference/plans.md describes the file.
 */
#ifndef LW_PRELOAD_PLAN_H
#define LW_PRELOAD_PLAN_H

#include <stdbool.h>

#include "lock_type.h"

/* What a plan says about a mutex. */
enum lw_planned {
	LW_PLANNED_NOT,	  /* nothing: no line names it */
	LW_PLANNED_GLIBC, /* glibc serves it */
	LW_PLANNED_LOCK,  /* a lock serves it, by its number in lw_lock_types */
};

/* Reads the plan, and reports once if it is not obeyed. Later calls do nothing. */
void lw_plan_read(const char *path);

/*
 * Returns what the plan says about a mutex or an rwlock at `address`, which a call that returns to
 * `caller` initialises or locks. Sets *lock to the lock's number. A lock that has no readers cannot
 * serve an rwlock, nor one with readers a mutex; glibc does. Finds modules that were loaded
 * meanwhile.
 */
enum lw_planned lw_plan_find(const void *address, const void *caller, bool has_readers,
			     unsigned int *lock);

/* Reports how many mutexes and rwlocks each line serves. */
void lw_plan_report(void);

#endif
