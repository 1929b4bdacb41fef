/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Initialisers of spinlocks that opt in to HQ: their waiters queue by NUMA node under
 * contention. After that, such a spinlock is used like any other. Without
 * CONFIG_HQSPINLOCKS these initialisers make ordinary spinlocks.
 */
#ifndef __LINUX_SPINLOCK_HQ_H
#define __LINUX_SPINLOCK_HQ_H

#ifndef __LINUX_SPINLOCK_TYPES_H
#error "Please include <linux/spinlock.h> or <linux/spinlock_types.h>"
#endif

/*
 * With RISCV_COMBO_SPINLOCKS, spinlocks may become ticket spinlocks at boot, which have no type
 * bit. An initialiser in the image of the kernel cannot know that.
 */
#if defined(CONFIG_HQSPINLOCKS) && !defined(CONFIG_RISCV_COMBO_SPINLOCKS)
#define __ARCH_SPIN_LOCK_UNLOCKED_HQ                  \
	{                                             \
		{                                     \
			.val = ATOMIC_INIT(_Q_HQ_VAL) \
		}                                     \
	}
#else
#define __ARCH_SPIN_LOCK_UNLOCKED_HQ __ARCH_SPIN_LOCK_UNLOCKED
#endif

/*
 * An initialiser in running code makes an ordinary spinlock if waiters of HQ-spinlocks do not queue
 * by NUMA node. Its fast path needs one compare-and-swap less.
 */
#ifdef CONFIG_HQSPINLOCKS
#include <linux/compiler.h>

extern bool hqlock_on;

static inline arch_spinlock_t arch_spin_lock_unlocked_hq(void)
{
	if (READ_ONCE(hqlock_on))
		return (arch_spinlock_t){{.val = ATOMIC_INIT(_Q_HQ_VAL)}};
	return (arch_spinlock_t)__ARCH_SPIN_LOCK_UNLOCKED;
}
#else
static inline arch_spinlock_t arch_spin_lock_unlocked_hq(void)
{
	return (arch_spinlock_t)__ARCH_SPIN_LOCK_UNLOCKED;
}
#endif

#define DEFINE_RAW_SPINLOCK_HQ(x)                                     \
	raw_spinlock_t x = {.raw_lock = __ARCH_SPIN_LOCK_UNLOCKED_HQ, \
			    SPIN_DEBUG_INIT(x) RAW_SPIN_DEP_MAP_INIT(x)}

/* A macro, so that lockdep gets the name of @lock and a class for each place of use. */
#define raw_spin_lock_init_hq(lock)                              \
	do {                                                     \
		raw_spin_lock_init(lock);                        \
		(lock)->raw_lock = arch_spin_lock_unlocked_hq(); \
	} while (0)

#ifdef CONFIG_PREEMPT_RT
/* With PREEMPT_RT waiters sleep, so there is no queue of spinning waiters. */
#define DEFINE_SPINLOCK_HQ(x)	DEFINE_SPINLOCK(x)
#define spin_lock_init_hq(lock) spin_lock_init(lock)
#else
#define DEFINE_SPINLOCK_HQ(x)                                                \
	spinlock_t x = {{.rlock = {.raw_lock = __ARCH_SPIN_LOCK_UNLOCKED_HQ, \
				   SPIN_DEBUG_INIT(x) SPIN_DEP_MAP_INIT(x)}}}

#define spin_lock_init_hq(lock)                                                \
	do {                                                                   \
		spin_lock_init(lock);                                          \
		spinlock_check(lock)->raw_lock = arch_spin_lock_unlocked_hq(); \
	} while (0)
#endif

#endif
