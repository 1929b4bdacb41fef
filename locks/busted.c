// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* A lock that excludes nobody. A tool that tests locks must report it: that tests the tool. */
#include "lock_type.h"
#include "operations.h"

struct lw_busted {
	lw_atomic(uint32_t) unused;
};

static inline void lw_busted_lock(struct lw_busted *lock)
{
	lw_store(&lock->unused, 1, relaxed);
}

static inline bool lw_busted_trylock(struct lw_busted *lock)
{
	lw_busted_lock(lock);
	return true;
}

static inline void lw_busted_unlock(struct lw_busted *lock)
{
	lw_store(&lock->unused, 0, relaxed);
}

LW_DESCRIBE(busted, struct lw_busted, .summary = "excludes no thread, on purpose",
	    .traits = LW_BROKEN, .origin = "after locktorture's lock_busted");
