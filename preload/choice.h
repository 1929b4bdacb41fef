/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lock that serves this process: that of LOCKWORKS_LOCK, or else the default, which is inlined
 * where it counts.
 *
 * It is chosen at the first call or by our constructor, whatever is first. Where there is no
 * environment yet, as when the loader still relocates, there is one thread only, which needs no
 * lock: none is taken then.
 */
#ifndef LW_PRELOAD_CHOICE_H
#define LW_PRELOAD_CHOICE_H

#include "lock_type.h"
#include "mutex.h"

#define LW_DEFAULT_LOCK "mutex"

typedef void lw_lock_fn(void *lock, void *node);

struct lw_choice {
	/* 0: it is the default. Otherwise it is another, or not chosen yet. */
	lw_atomic(uint32_t) special;
	lw_atomic(const struct lw_lock_type *) type;
	/* type->lock, with a look at how many threads there are before it, while that matters */
	lw_atomic(lw_lock_fn *) lock;
};

extern struct lw_choice lw_choice __attribute__((visibility("hidden")));

const struct lw_lock_type *lw_choose_lock(void);

/* NULL: it is too early for locks. */
static inline const struct lw_lock_type *lw_chosen(void)
{
	const struct lw_lock_type *type = lw_load(&lw_choice.type, acquire);

	return lw_unlikely(!type) ? lw_choose_lock() : type;
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
