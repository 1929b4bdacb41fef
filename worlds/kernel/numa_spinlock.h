/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hook in kernel/locking/qspinlock.c: a slow path other than the stock one, if chosen. */
#ifndef LW_NUMA_SPINLOCK_H
#define LW_NUMA_SPINLOCK_H

#include <linux/types.h>

struct qspinlock;

#ifdef CONFIG_HQSPINLOCKS
#include <asm-generic/qspinlock_types.h>
#include <linux/numa.h>

struct lw_node;

/* Whether waiters of HQ-spinlocks queue by NUMA node, and where. */
extern bool hqlock_on;
extern struct lw_node *hqlock_node_queues[MAX_NUMNODES];

/**
 * hq_spin_lock_slowpath - acquire a queued spinlock that opted in to HQ
 * @lock: the lock, seen not to be all zero
 * @val: its word, as seen
 *
 * Called with preemption disabled, in any context.
 */
void hq_spin_lock_slowpath(struct qspinlock *lock, u32 val);

/**
 * hq_spin_lock_taken - acquire a queued spinlock if it opted in to HQ
 * @lock: the lock, seen not to be all zero
 * @val: its word, as seen
 *
 * Called with preemption disabled, in any context. A lock that opted in never goes
 * elsewhere, since other slow paths do not know its service bits.
 *
 * Return: true if the lock has been acquired, false if it did not opt in.
 */
static __always_inline bool hq_spin_lock_taken(struct qspinlock *lock, u32 val)
{
	if (!(val & _Q_HQ_VAL))
		return false;
	hq_spin_lock_slowpath(lock, val);
	return true;
}
#else
static __always_inline bool hq_spin_lock_taken(struct qspinlock *lock, u32 val)
{
	return false;
}
#endif

#ifdef CONFIG_NUMA_AWARE_SPINLOCKS
#include <linux/jump_label.h>

enum numa_spinlock_path {
	NUMA_SPINLOCK_STOCK,
	NUMA_SPINLOCK_QSPINLOCK, /* Lockworks' own queued spinlock */
	NUMA_SPINLOCK_CNA,
	NUMA_SPINLOCK_UNFAIR, /* with CONFIG_LOCKWORKS_GUEST */
	NUMA_SPINLOCK_PATHS,
};

/* What a guest's spinlocks are, by lockworks_guest=. From the first paravirt one on, vCPUs halt. */
enum guest_spinlock {
	GUEST_SPINLOCK_AUTO, /* as the kernel and its hypervisor have it */
	GUEST_SPINLOCK_NATIVE,
	GUEST_SPINLOCK_BYTE,
	GUEST_SPINLOCK_UNFAIR, /* native ones with that slow path */
	GUEST_SPINLOCK_STOCK_PV,
	GUEST_SPINLOCK_PV42,
	GUEST_SPINLOCK_PV,
	GUEST_SPINLOCKS,
};

extern const char *const guest_spinlock_names[GUEST_SPINLOCKS];
#ifdef CONFIG_LOCKWORKS_GUEST
extern enum guest_spinlock guest_spinlock;

/* Where a lock's halted queue head is found, if heads halt; enough for all that wait at a time. */
struct lw_parked_head;
extern struct lw_parked_head *guest_parked_heads;
extern unsigned int guest_parked_heads_bits;
bool guest_parked_heads_provide(void);

/* As pv_ops calls them: to unlock changes no register. */
void pv42_spin_lock_slowpath(struct qspinlock *lock, u32 val);
void pv42_spin_unlock(struct qspinlock *lock);
void pv_spin_lock_slowpath(struct qspinlock *lock, u32 val);
void pv_spin_unlock(struct qspinlock *lock);
#else
#define guest_spinlock GUEST_SPINLOCK_AUTO
#endif

/* Whether numa_spinlock_path may be other than stock. */
DECLARE_STATIC_KEY_FALSE(numa_spinlock_key);
extern enum numa_spinlock_path numa_spinlock_path;
extern const char *const numa_spinlock_names[NUMA_SPINLOCK_PATHS];

struct lw_tunables;
extern struct lw_tunables numa_spinlock_tunables;

/**
 * numa_spin_lock_slowpath - acquire a queued spinlock on Lockworks' slow path
 * @lock: the lock, seen not to be all zero
 * @val: its word, as seen
 *
 * Called with preemption disabled, in any context, while the chosen path is not stock.
 */
void numa_spin_lock_slowpath(struct qspinlock *lock, u32 val);

/**
 * numa_spin_lock_taken - acquire a queued spinlock on the chosen slow path
 * @lock: the lock, seen not to be all zero
 * @val: its word, as seen
 *
 * Called with preemption disabled, in any context.
 *
 * Return: true if the lock has been acquired, false if the stock slow path is chosen.
 */
static __always_inline bool numa_spin_lock_taken(struct qspinlock *lock, u32 val)
{
	if (!static_branch_unlikely(&numa_spinlock_key) ||
	    READ_ONCE(numa_spinlock_path) == NUMA_SPINLOCK_STOCK)
		return false;
	numa_spin_lock_slowpath(lock, val);
	return true;
}

/**
 * numa_spinlock_type - find a lock for a test, with CONFIG_NUMA_AWARE_SPINLOCKS_TEST
 * @name: qspinlock, cna, hq, unfair, pv42 or pv
 *
 * Return: the lock, to be used with preemption disabled, or NULL if it is none.
 */
const struct lw_lock_type *numa_spinlock_type(const char *name);
#else
static __always_inline bool numa_spin_lock_taken(struct qspinlock *lock, u32 val)
{
	return false;
}
#endif

#endif
