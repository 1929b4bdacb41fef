/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lock that serves this process: the one that LOCKWORKS_LOCK names, or else the default, whose
 * fast path is inlined. With LOCKWORKS_PLAN each mutex has its own, which its type names.
 *
 * The lock is chosen at the first call or by our constructor, whichever comes first. While there is
 * no environment yet, as when the loader is still relocating, there is only one thread. It needs no
 * lock, and none is acquired.
 */
#ifndef LW_PRELOAD_CHOICE_H
#define LW_PRELOAD_CHOICE_H

#include <limits.h>

#include "lock_type.h"
#include "mutex.h"

#define LW_DEFAULT_LOCK "mutex"

typedef void lw_lock_fn(void *lock, void *node);

/* The type of no mutex. */
#define LW_NO_KIND INT_MIN

struct lw_choice {
	/* The type of normal mutexes that the default lock serves. LW_NO_KIND: none, or none yet.
	 */
	lw_atomic(int) plain;
	/* What the types of mutexes have that are served: LW_KIND_SERVED with a plan, else 0 */
	lw_atomic(int) mark;
	lw_atomic(bool) served; /* the lock has served a mutex */
	lw_atomic(const struct lw_lock_type *) type;
	/* type->lock, or a function that may warn about too many threads before it calls that */
	lw_atomic(lw_lock_fn *) lock;
};

extern struct lw_choice lw_choice __attribute__((visibility("hidden")));

/* Chooses the lock. Threads that call it at the same time choose the same. */
const struct lw_lock_type *lw_choose_lock(void);

/* Returns the chosen lock; NULL while it is too early for locks. */
static inline const struct lw_lock_type *lw_chosen(void)
{
	const struct lw_lock_type *type = lw_load(&lw_choice.type, acquire);

	return lw_unlikely(!type) ? lw_choose_lock() : type;
}

/* Returns whether a plan says which mutexes are served. */
static inline bool lw_has_plan(void)
{
	return lw_chosen() && lw_load(&lw_choice.mark, relaxed);
}

/* Returns why a lock cannot serve pthread mutexes; NULL if it can. */
const char *lw_unfit(const struct lw_lock_type *type);

/* Chooses the path of further acquisitions: inlined, if the default lock serves. */
void lw_choose_path(void);

/* Records that the chosen lock serves a mutex. The inlined path need not: it opens at the first. */
static inline void lw_serves(void)
{
	if (lw_unlikely(!lw_load(&lw_choice.served, relaxed)))
		lw_choose_path();
}

static inline void lw_default_lock(void *lock)
{
	lw_mutex_lock((struct lw_mutex *)lock);
}

static inline bool lw_default_trylock(void *lock)
{
	return lw_mutex_trylock((struct lw_mutex *)lock);
}

static inline void lw_default_unlock(void *lock)
{
	lw_mutex_unlock((struct lw_mutex *)lock);
}

#endif
