/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hooks in kernel/locking/qspinlock.c, which call slow paths other than the stock one. */
#ifndef LW_NUMA_SPINLOCK_H
#define LW_NUMA_SPINLOCK_H

#include <linux/types.h>
#include <asm-generic/qspinlock_types.h>

#ifdef CONFIG_HQSPINLOCKS
#include <linux/numa.h>

struct lw_node;

/* The queues of each NUMA node. */
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
 * Called with preemption disabled, in any context. A lock that opted in is never acquired
 * on another slow path, because no other slow path knows its service bits.
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
#ifdef CONFIG_LOCKWORKS_MUTEX
	NUMA_SPINLOCK_MUTEX,
#endif
#ifdef CONFIG_LOCKWORKS_GUEST
	NUMA_SPINLOCK_UNFAIR,
#endif
	NUMA_SPINLOCK_PATHS,
};

/*
 * A path as numa_spinlock_chosen has it. The lowest bit is set if the mutex was chosen before:
 * words may then have bits that only the mutex knows, and that are cleared first.
 */
#define NUMA_SPINLOCK_CHOSEN(path, after_mutex) ((path) << 1 | (after_mutex))
#define NUMA_SPINLOCK_PATH(chosen)		((enum numa_spinlock_path)((chosen) >> 1))
#define NUMA_SPINLOCK_AFTER_MUTEX(chosen)	((chosen)&1)

/*
 * The spinlocks of a guest, which lockworks_guest= chooses. With STOCK_PV and those after
 * it, virtual CPUs halt.
 */
enum guest_spinlock {
	GUEST_SPINLOCK_AUTO, /* what kernel and hypervisor choose */
	GUEST_SPINLOCK_NATIVE,
	GUEST_SPINLOCK_BYTE,
	GUEST_SPINLOCK_UNFAIR, /* native spinlocks with the unfair slow path */
	GUEST_SPINLOCK_STOCK_PV,
	GUEST_SPINLOCK_PV,
	GUEST_SPINLOCK_PV_MUTEX, /* with CONFIG_LOCKWORKS_MUTEX */
	GUEST_SPINLOCKS,
};

extern const char *const guest_spinlock_names[GUEST_SPINLOCKS];
#ifdef CONFIG_LOCKWORKS_GUEST
extern enum guest_spinlock guest_spinlock;

/* A table to find the halted queue head of a lock, with room for every possible waiter. */
struct lw_parked_head;
extern struct lw_parked_head *guest_parked_heads;
extern unsigned int guest_parked_heads_bits;
bool guest_parked_heads_provide(void);

/* Chosen by lw_pv_lock_choose(). The unlock changes no register. */
void pv_spin_lock_slowpath(struct qspinlock *lock, u32 val);
void __no_caller_saved_registers pv_spin_unlock(struct qspinlock *lock);
void pv_mutex_lock_slowpath(struct qspinlock *lock, u32 val);
void __no_caller_saved_registers pv_mutex_unlock(struct qspinlock *lock);
#else
#define guest_spinlock		GUEST_SPINLOCK_AUTO
#define guest_parked_heads	((struct lw_parked_head *)NULL)
#define guest_parked_heads_bits 1
#endif

#if defined(CONFIG_X86) && defined(CONFIG_PARAVIRT_SPINLOCKS)
#include <linux/version.h>
#include <asm/paravirt.h>
#include <asm/qspinlock.h>

/*
 * The operations of paravirt spinlocks are a structure of their own since Linux 7. Its header is
 * then among those of queued spinlocks.
 */
#ifdef _ASM_X86_PARAVIRT_SPINLOCK_H
#define lw_pv_lock_ops pv_ops_lock
#else
#define lw_pv_lock_ops pv_ops.lock
#endif

/*
 * The slow path and the unlock of paravirt spinlocks, which are static calls since Linux 7.3. The
 * type of an unlock may have the attribute that it changes no register.
 */
#if KERNEL_VERSION(7, 3, 0) <= LINUX_VERSION_CODE
#include <linux/static_call.h>

#define lw_pv_lock_slowpath() static_call_query(queued_spin_lock_slowpath)
#define lw_pv_lock_choose(slowpath, unlock)                               \
	do {                                                              \
		static_call_update(queued_spin_lock_slowpath, slowpath);  \
		static_call_update(queued_spin_unlock, (void *)(unlock)); \
	} while (0)
#else
#define lw_pv_lock_slowpath() (lw_pv_lock_ops.queued_spin_lock_slowpath)
#define lw_pv_lock_choose(slowpath, unlock)                                                \
	do {                                                                               \
		lw_pv_lock_ops.queued_spin_lock_slowpath = (slowpath);                     \
		lw_pv_lock_ops.queued_spin_unlock = __PV_IS_CALLEE_SAVE((void *)(unlock)); \
	} while (0)
#endif
#endif

/*
 * Whether the kernel's spinlocks are queued ones. With RISCV_COMBO_SPINLOCKS they may become ticket
 * spinlocks at boot, before any of Lockworks' slow paths is chosen.
 */
#ifdef CONFIG_RISCV_COMBO_SPINLOCKS
#include <linux/spinlock.h>

static inline bool numa_spinlock_is_queued(void)
{
	return static_key_enabled(&qspinlock_key);
}
#else
static inline bool numa_spinlock_is_queued(void)
{
	return true;
}
#endif

/* True if the path that is chosen may be another one than the stock one. */
DECLARE_STATIC_KEY_FALSE(numa_spinlock_key);

/* Whether numa_spinlock= asks for one of the paths below, and not just for what is best. */
bool numa_spinlock_is_forced(void);
extern unsigned int numa_spinlock_chosen;
extern const char *const numa_spinlock_names[NUMA_SPINLOCK_PATHS];

struct lw_tunables;
extern struct lw_tunables numa_spinlock_tunables;

/**
 * numa_spin_lock_slowpath - acquire a queued spinlock on Lockworks' slow path
 * @lock: the lock, seen not to be all zero
 * @val: its word, as seen
 *
 * Called with preemption disabled, in any context.
 */
void numa_spin_lock_slowpath(struct qspinlock *lock, u32 val);

/* Whether the stock slow path is chosen although the key is enabled, and knows all bits of @val. */
static __always_inline bool numa_spinlock_is_stock(u32 val)
{
#ifdef CONFIG_NUMA_AWARE_SPINLOCKS_SWITCH
	unsigned int chosen = READ_ONCE(numa_spinlock_chosen);

	return chosen <= NUMA_SPINLOCK_CHOSEN(NUMA_SPINLOCK_STOCK, true) &&
	       !(chosen && val & _Q_SERVICE_MASK);
#else
	return false;
#endif
}

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
	if (!static_branch_unlikely(&numa_spinlock_key) || numa_spinlock_is_stock(val))
		return false;
	numa_spin_lock_slowpath(lock, val);
	return true;
}

/**
 * numa_spinlock_type - find a lock for a test, in kernels with one of our test modules
 * @name: qspinlock, cna, hq, mutex, rwlock, unfair or pv
 *
 * Return: the lock, to be used with preemption disabled, or NULL if @name is not a lock.
 */
const struct lw_lock_type *numa_spinlock_type(const char *name);
#else
static __always_inline bool numa_spin_lock_taken(struct qspinlock *lock, u32 val)
{
	return false;
}
#endif

#endif
