// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Lockworks in Linux: which slow path the queued spinlocks take, chosen at boot.
 *
 * Fast path, lock word and unlock stay Linux' own, and so does the slow path of
 * paravirt guests, which does not pass the hook.
 */
#define pr_fmt(fmt) "lockworks: " fmt

#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/nodemask.h>
#include <linux/spinlock.h>
#include <linux/string_helpers.h>
#include <asm/qspinlock.h>
#include <trace/events/lock.h>

#include "numa_spinlock.h"
#include "qspinlock.c"
#include "cna.c"

/* Our lock word is the kernel's, in the layout for fewer than 16 K CPUs. */
static_assert(sizeof(union lw_word) == sizeof(struct qspinlock));
static_assert(offsetof(union lw_word, locked) == offsetof(struct qspinlock, locked));
static_assert(offsetof(union lw_word, pending) == offsetof(struct qspinlock, pending));
static_assert(LW_LOCKED == _Q_LOCKED_VAL && LW_LOCKED_MASK == _Q_LOCKED_MASK);
static_assert(LW_PENDING == _Q_PENDING_VAL && (LW_PENDING | LW_SERVICE_MASK) == _Q_PENDING_MASK);
static_assert(LW_TAIL_MASK == _Q_TAIL_MASK && LW_TAIL_SLOT_SHIFT == _Q_TAIL_CPU_OFFSET);
static_assert(CONFIG_NR_CPUS <= LW_MAX_SLOTS);
static_assert(MAX_NUMNODES <= LW_CNA_PRIORITY); /* so a CPU of no node is never passed over */

/* One each for task, softirq, hardirq and NMI. */
struct lw_kernel_slot {
	struct lw_node nodes[LW_NODES_PER_SLOT];
};
static DEFINE_PER_CPU_ALIGNED(struct lw_kernel_slot, lw_kernel_slots);

static __always_inline struct lw_node *lw_kernel_nodes_of(unsigned int cpu)
{
	return per_cpu(lw_kernel_slots, cpu).nodes;
}

DEFINE_STATIC_KEY_FALSE(numa_spinlock_key);
enum numa_spinlock_path numa_spinlock_path __read_mostly;
struct lw_tunables numa_spinlock_tunables __read_mostly = {
	LW_TUNABLES_DEFAULT,
#define LW_HQLOCK_TUNABLE(tunable, value, ...) .hqlock_##tunable = (value),
#include "hqlock_tunables_list.h"
};

const char *const numa_spinlock_names[NUMA_SPINLOCK_PATHS] = {
	[NUMA_SPINLOCK_STOCK] = "stock",
	[NUMA_SPINLOCK_QSPINLOCK] = "qspinlock",
	[NUMA_SPINLOCK_CNA] = "cna",
};

/* All that waits is traced, on the pending bit as well: the stock slow path leaves that out. */
void __lockfunc numa_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	trace_contention_begin(lock, LCB_F_SPIN);
	if (READ_ONCE(numa_spinlock_path) == NUMA_SPINLOCK_CNA)
		lw_cna_lock_slow((struct lw_cna *)lock, val);
	else
		lw_qspinlock_lock_slow((struct lw_qspinlock *)lock, val);
	trace_contention_end(lock, 0);
}

/* Paravirt guests have a slow path of their own, which does not pass the hook. */
static bool __init hook_is_passed(void)
{
#if defined(CONFIG_X86) && defined(CONFIG_PARAVIRT_SPINLOCKS)
	return pv_ops.lock.queued_spin_lock_slowpath == native_queued_spin_lock_slowpath;
#else
	return true;
#endif
}

static bool own_qspinlock __initdata;

static int __init qspinlock_setup(char *arg)
{
	if (arg && !strcmp(arg, "lockworks"))
		own_qspinlock = true;
	else if (arg && !strcmp(arg, "stock"))
		own_qspinlock = false;
	else
		pr_warn("qspinlock=%s refused: stock or lockworks\n", arg ?: "");
	return 0;
}
early_param("qspinlock", qspinlock_setup);

static enum { NUMA_AUTO, NUMA_ON, NUMA_OFF } numa_mode __initdata;

static int __init numa_spinlock_setup(char *arg)
{
	if (arg && !strcmp(arg, "auto"))
		numa_mode = NUMA_AUTO;
	else if (arg && !strcmp(arg, "on"))
		numa_mode = NUMA_ON;
	else if (arg && !strcmp(arg, "off"))
		numa_mode = NUMA_OFF;
	else
		pr_warn("numa_spinlock=%s refused: auto, on or off\n", arg ?: "");
	return 0;
}
early_param("numa_spinlock", numa_spinlock_setup);

static bool __init numa_wanted(void)
{
#ifdef virt_spin_lock
	/* The byte lock of guests that have no paravirt spinlocks. */
	if (numa_mode == NUMA_AUTO && static_key_enabled(&virt_spin_lock_key))
		return false;
#endif
	return numa_mode == NUMA_ON || (numa_mode == NUMA_AUTO && num_possible_nodes() >= 2);
}

static int __init numa_threshold_setup(char *arg)
{
	unsigned int ms;

	if (arg && !kstrtouint(arg, 10, &ms) && ms >= LW_NUMA_THRESHOLD_MIN_MS &&
	    ms <= LW_NUMA_THRESHOLD_MAX_MS)
		numa_spinlock_tunables.numa_threshold_ms = ms;
	else
		pr_warn("numa_spinlock_threshold=%s refused: %d to %d; it stays %u ms\n", arg ?: "",
			LW_NUMA_THRESHOLD_MIN_MS, LW_NUMA_THRESHOLD_MAX_MS,
			numa_spinlock_tunables.numa_threshold_ms);
	return 0;
}
early_param("numa_spinlock_threshold", numa_threshold_setup);

static int __init shuffle_reduction_setup(char *arg)
{
	if (arg && !strcmp(arg, "on"))
		numa_spinlock_tunables.shuffle_reduction = true;
	else if (arg && !strcmp(arg, "off"))
		numa_spinlock_tunables.shuffle_reduction = false;
	else
		pr_warn("numa_spinlock_shuffle_reduction=%s refused: on or off\n", arg ?: "");
	return 0;
}
early_param("numa_spinlock_shuffle_reduction", shuffle_reduction_setup);

static int __init numa_spinlock_init(void)
{
	int cpu;

	if (!hook_is_passed()) {
		pr_info("off: paravirt spinlocks are in use\n");
		return 0;
	}

	for_each_possible_cpu(cpu)
		per_cpu(lw_kernel_random, cpu) = cpu;

	if (own_qspinlock)
		numa_spinlock_path = NUMA_SPINLOCK_QSPINLOCK;
	if (numa_wanted())
		numa_spinlock_path = NUMA_SPINLOCK_CNA;
	pr_info("%s, NUMA threshold %u ms, shuffle reduction %s, %u nodes\n",
		numa_spinlock_names[numa_spinlock_path], numa_spinlock_tunables.numa_threshold_ms,
		str_on_off(numa_spinlock_tunables.shuffle_reduction), num_possible_nodes());

	/* No other CPU is up yet, so nobody waits on either path. */
	if (numa_spinlock_path != NUMA_SPINLOCK_STOCK ||
	    IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_SWITCH))
		static_branch_enable(&numa_spinlock_key);
	return 0;
}
early_initcall(numa_spinlock_init);

#if IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_TEST)
const struct lw_lock_type *numa_spinlock_type(const char *name)
{
	if (!strcmp(name, lw_qspinlock_type.name))
		return &lw_qspinlock_type;
	if (!strcmp(name, lw_cna_type.name))
		return &lw_cna_type;
	return NULL;
}
EXPORT_SYMBOL_GPL(numa_spinlock_type);
#endif
