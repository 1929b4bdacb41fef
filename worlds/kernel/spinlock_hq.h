/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opting in to HQ: a spinlock initialised by one of these lets waiters queue by NUMA
 * node while it is contended. All else is done to it as to any other spinlock.
 * Without CONFIG_HQSPINLOCKS it is like any other.
 */
#ifndef __LINUX_SPINLOCK_HQ_H
#define __LINUX_SPINLOCK_HQ_H

#ifndef __LINUX_SPINLOCK_TYPES_H
#error "Please include <linux/spinlock.h> or <linux/spinlock_types.h>"
#endif

#ifdef CONFIG_HQSPINLOCKS
#define __ARCH_SPIN_LOCK_UNLOCKED_HQ                  \
	{                                             \
		{                                     \
			.val = ATOMIC_INIT(_Q_HQ_VAL) \
		}                                     \
	}
#else
#define __ARCH_SPIN_LOCK_UNLOCKED_HQ __ARCH_SPIN_LOCK_UNLOCKED
#endif

#define DEFINE_RAW_SPINLOCK_HQ(x)                                     \
	raw_spinlock_t x = {.raw_lock = __ARCH_SPIN_LOCK_UNLOCKED_HQ, \
			    SPIN_DEBUG_INIT(x) RAW_SPIN_DEP_MAP_INIT(x)}

/* The name of @lock, and its class, are for lockdep to have, as of any other. */
#define raw_spin_lock_init_hq(lock)                                               \
	do {                                                                      \
		raw_spin_lock_init(lock);                                         \
		(lock)->raw_lock = (arch_spinlock_t)__ARCH_SPIN_LOCK_UNLOCKED_HQ; \
	} while (0)

#ifdef CONFIG_PREEMPT_RT
/* Waiters sleep. */
#define DEFINE_SPINLOCK_HQ(x)	DEFINE_SPINLOCK(x)
#define spin_lock_init_hq(lock) spin_lock_init(lock)
#else
#define DEFINE_SPINLOCK_HQ(x)                                                \
	spinlock_t x = {{.rlock = {.raw_lock = __ARCH_SPIN_LOCK_UNLOCKED_HQ, \
				   SPIN_DEBUG_INIT(x) SPIN_DEP_MAP_INIT(x)}}}

#define spin_lock_init_hq(lock)                                                                 \
	do {                                                                                    \
		spin_lock_init(lock);                                                           \
		spinlock_check(lock)->raw_lock = (arch_spinlock_t)__ARCH_SPIN_LOCK_UNLOCKED_HQ; \
	} while (0)
#endif

#endif
