// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * pthread_spin_*(): a test-and-test-and-set lock with glibc's values in its word, rather than the
 * chosen lock. Its 4 bytes do not say whether it is shared with other processes, and these may not
 * have loaded this library. So the lock must work with glibc's functions too. While it is held for
 * long, waiters pause for long. With a plan, they wait as glibc has it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "choice.h"
#include "glibc.h"
#include "surroundings.h"

/* glibc's values: on x86 a free lock is 1, and acquiring it decrements it. */
#if defined(__x86_64__) || defined(__i386__)
#define LW_SPIN_FREE 1u
#define LW_SPIN_HELD 0u
#else
#define LW_SPIN_FREE 0u
#define LW_SPIN_HELD 1u
#endif

struct lw_spin {
	lw_atomic(uint32_t) state;
};

_Static_assert(sizeof(pthread_spinlock_t) == sizeof(struct lw_spin),
	       "it is as large as glibc's spinlock");

static struct lw_spin *lw_spin_of(pthread_spinlock_t *lock)
{
	return (struct lw_spin *)(uintptr_t)lock;
}

static inline bool lw_spin_take(struct lw_spin *spin)
{
	uint32_t state = LW_SPIN_FREE;

	return lw_try_cmpxchg(&spin->state, &state, LW_SPIN_HELD, acquire);
}

LW_EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	(void)shared;
	lw_store(&lw_spin_of(lock)->state, LW_SPIN_FREE, relaxed);
	return 0;
}

LW_EXPORT int pthread_spin_destroy(pthread_spinlock_t *lock)
{
	(void)lock;
	return 0;
}

LW_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	struct lw_spin *spin = lw_spin_of(lock);

	if (lw_has_plan())
		return lw_glibc()->spin_lock(lock);
	while (lw_unlikely(!lw_spin_take(spin)))
		lw_await_eq_soon(&spin->state, ~0u, LW_SPIN_FREE, relaxed);
	return 0;
}

LW_EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	return lw_spin_take(lw_spin_of(lock)) ? 0 : EBUSY;
}

LW_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	lw_store(&lw_spin_of(lock)->state, LW_SPIN_FREE, release);
	return 0;
}
