// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Lockworks in Linux: the slow paths of queued spinlocks, and the choice among them at boot.
 *
 * Fast path, lock word and unlock stay those of Linux, and so does the slow path of
 * paravirt guests, which does not reach the hook of CNA. A hook before that of CNA calls
 * the slow path of HQ, for spinlocks that opted in.
 */
#define pr_fmt(fmt) "lockworks: " fmt

#include <linux/cpuhotplug.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string_helpers.h>
#include <asm/qspinlock.h>
#include <trace/events/lock.h>

#include "numa_spinlock.h"
#include "qspinlock.c"
#include "cna.c"
#ifdef CONFIG_LOCKWORKS_GUEST
#include "unfair.c"
#include "pv.c"
#endif
#ifdef CONFIG_HQSPINLOCKS
#include "hq.c"
#endif
#ifdef CONFIG_LOCKWORKS_MUTEX
#include "mutex.c"
#endif
#ifdef CONFIG_LOCKWORKS_RWLOCK
#include "lockworks_rwlock.c"
#endif

/* Lockworks' lock word is that of the kernel, in the layout for fewer than 16 K CPUs. */
static_assert(sizeof(union lw_word) == sizeof(struct qspinlock));
static_assert(offsetof(union lw_word, locked) == offsetof(struct qspinlock, locked));
static_assert(offsetof(union lw_word, pending) == offsetof(struct qspinlock, pending));
static_assert(LW_LOCKED == _Q_LOCKED_VAL && LW_LOCKED_MASK == _Q_LOCKED_MASK);
static_assert(LW_PENDING == _Q_PENDING_VAL);
static_assert((LW_PENDING | LW_SERVICE_MASK | LW_QUEUE_LOCKED | LW_PARKED) == _Q_PENDING_MASK);
static_assert(LW_TAIL_MASK == _Q_TAIL_MASK && LW_TAIL_SLOT_SHIFT == _Q_TAIL_CPU_OFFSET);
static_assert(CONFIG_NR_CPUS <= LW_MAX_SLOTS);
static_assert(MAX_NUMNODES <= LW_CNA_PRIORITY); /* so a CPU without a node keeps its place */
#ifdef CONFIG_HQSPINLOCKS
static_assert(LW_HQ == _Q_HQ_VAL);
static_assert(!(LW_SERVICE_MASK & ~_Q_SERVICE_MASK));
static_assert(MAX_NUMNODES <= LW_MAX_NUMA_NODES);
#endif
#ifdef CONFIG_LOCKWORKS_MUTEX
/* Stock code ignores the bits that stay in an unlocked word, and no bit is that of HQ. */
static_assert(!(LW_MAY_STAY & ~_Q_SERVICE_MASK));
static_assert(!((LW_MAY_STAY | LW_PARKED) & _Q_HQ_VAL));
/* Bits of HQ never look like a halted queue head to the unlock of pv-mutex. */
static_assert(!(LW_SERVICE_MASK & LW_HEAD_ASLEEP));
#endif

/* A queue node each for task, softirq, hardirq and NMI. */
struct lw_kernel_slot {
	struct lw_node nodes[LW_NODES_PER_SLOT];
};
static DEFINE_PER_CPU_ALIGNED(struct lw_kernel_slot, lw_kernel_slots);

static __always_inline struct lw_node *lw_kernel_nodes_of(unsigned int cpu)
{
	return per_cpu(lw_kernel_slots, cpu).nodes;
}

DEFINE_STATIC_KEY_FALSE(numa_spinlock_key);
unsigned int numa_spinlock_chosen __read_mostly;
struct lw_tunables numa_spinlock_tunables __read_mostly = {
	LW_TUNABLES_DEFAULT,
#define LW_TUNABLE(tunable, user_value, value, ...) .tunable = (value),
#include "tunables_list.h"
};

const char *const numa_spinlock_names[NUMA_SPINLOCK_PATHS] = {
	[NUMA_SPINLOCK_STOCK] = "stock",   [NUMA_SPINLOCK_QSPINLOCK] = "qspinlock",
	[NUMA_SPINLOCK_CNA] = "cna",
#ifdef CONFIG_LOCKWORKS_MUTEX
	[NUMA_SPINLOCK_MUTEX] = "mutex",
#endif
#ifdef CONFIG_LOCKWORKS_GUEST
	[NUMA_SPINLOCK_UNFAIR] = "unfair",
#endif
};

#ifdef CONFIG_LOCKWORKS_MUTEX
/* The mutex leaves flags in free locks. Other slow paths do not know them. */
static u32 clear_left_flags(struct qspinlock *lock, u32 val)
{
	if (val & LW_MAY_STAY)
		atomic_andnot(LW_MAY_STAY, &lock->val);
	return val & ~LW_MAY_STAY;
}
#else
static u32 clear_left_flags(struct qspinlock *lock, u32 val)
{
	return val;
}
#endif

/* The slow paths that numa_spin_lock_slowpath() does not call itself. */
static noinline void other_slowpath(struct qspinlock *lock, u32 val, unsigned int chosen)
{
	if (NUMA_SPINLOCK_AFTER_MUTEX(chosen))
		val = clear_left_flags(lock, val);

	switch (NUMA_SPINLOCK_PATH(chosen)) {
	case NUMA_SPINLOCK_STOCK:
		queued_spin_lock_slowpath(lock, val);
		break;
	case NUMA_SPINLOCK_CNA:
		lw_cna_lock_slow((struct lw_cna *)lock, val);
		break;
#ifdef CONFIG_LOCKWORKS_MUTEX
	case NUMA_SPINLOCK_MUTEX:
		lw_mutex_lock_slow((struct lw_mutex *)lock);
		break;
#endif
#ifdef CONFIG_LOCKWORKS_GUEST
	case NUMA_SPINLOCK_UNFAIR:
		/* The lock may be free while waiters queue, and can then be stolen. */
		if (lw_word_steal((union lw_word *)lock, val))
			lw_count(steals_on_arrival);
		else
			lw_unfair_lock_slow((struct lw_unfair *)lock);
		break;
#endif
	default:
		lw_qspinlock_lock_slow((struct lw_qspinlock *)lock, val);
		break;
	}
}

/* Every wait is traced. The stock slow path does not trace waits with the pending bit. */
void __lockfunc numa_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	unsigned int chosen = READ_ONCE(numa_spinlock_chosen);

	trace_contention_begin(lock, LCB_F_SPIN);
	if (likely(chosen == NUMA_SPINLOCK_CHOSEN(NUMA_SPINLOCK_CNA, false)))
		lw_cna_lock_slow((struct lw_cna *)lock, val);
	else if (chosen == NUMA_SPINLOCK_CHOSEN(NUMA_SPINLOCK_QSPINLOCK, false))
		lw_qspinlock_lock_slow((struct lw_qspinlock *)lock, val);
	else
		other_slowpath(lock, val, chosen);
	trace_contention_end(lock, 0);
}

#ifdef CONFIG_HQSPINLOCKS
bool hqlock_on __read_mostly;
EXPORT_SYMBOL(hqlock_on);
struct lw_node *hqlock_node_queues[MAX_NUMNODES] __read_mostly;

/*
 * HQ is off for good: a spinlock that opted in loses its type bit when it is first contended, and
 * is a plain one from then on. No CPU waits in a queue of HQ, so that may happen at any time.
 */
static DEFINE_STATIC_KEY_FALSE(hqlock_never_key);

void __lockfunc hq_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	if (static_branch_unlikely(&hqlock_never_key)) {
		atomic_andnot(_Q_HQ_VAL, &lock->val);
		queued_spin_lock_slowpath(lock, val & ~_Q_HQ_VAL);
		return;
	}
	/* The fast path acquires a free lock only if its word has no other service bit. */
	if (lw_word_is_free(val) && lw_hq_try_take_free((union lw_word *)lock, &val))
		return;
	trace_contention_begin(lock, LCB_F_SPIN);
	lw_hq_lock_slow((struct lw_hq *)lock, val);
	trace_contention_end(lock, 0);
}

/*
 * The queues of a NUMA node are allocated when its first CPU comes online. Until then,
 * and if there is no memory for them, each waiter on the node has a place of its own in
 * the queue of the lock word.
 */
static int node_queues_provide(unsigned int cpu)
{
	int node = numa_node_id();
	struct lw_node *queues;

	if (node == NUMA_NO_NODE || READ_ONCE(hqlock_node_queues[node]))
		return 0;
	queues = kvzalloc_node(LW_NODE_QUEUES * sizeof(*queues), GFP_KERNEL, node);
	/* Release: a CPU that sees the pointer sees empty queues. */
	if (cmpxchg_release(&hqlock_node_queues[node], NULL, queues))
		kvfree(queues);
	return 0;
}

static bool __init node_queues_wanted(void)
{
#ifdef CONFIG_LOCKWORKS_MUTEX
	if (NUMA_SPINLOCK_PATH(numa_spinlock_chosen) == NUMA_SPINLOCK_MUTEX ||
	    guest_spinlock == GUEST_SPINLOCK_PV_MUTEX)
		return true;
#endif
	return hqlock_on || IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_SWITCH);
}

static int __init node_queues_init(void)
{
	int error = 0;

	if (node_queues_wanted())
		error = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "locking/hqlock:online",
					  node_queues_provide, NULL);
	return error < 0 ? error : 0;
}
core_initcall(node_queues_init);
#endif

#ifdef CONFIG_LOCKWORKS_GUEST
struct lw_parked_head *guest_parked_heads __ro_after_init;
unsigned int guest_parked_heads_bits __ro_after_init = 1;

bool __init guest_parked_heads_provide(void)
{
	unsigned int heads = roundup_pow_of_two(LW_NODES_PER_SLOT * nr_cpu_ids);

	guest_parked_heads_bits = ilog2(heads);
	guest_parked_heads = memblock_alloc(heads * sizeof(*guest_parked_heads), SMP_CACHE_BYTES);
	return guest_parked_heads;
}

#ifdef CONFIG_PARAVIRT_SPINLOCKS
/* The unlock must preserve all registers, and should save few unless it kicks a waiter. */
static_assert(__has_attribute(__no_caller_saved_registers__));

void __lockfunc pv_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	if (hq_spin_lock_taken(lock, val))
		return;
	trace_contention_begin(lock, LCB_F_SPIN);
	lw_pv_lock_slow((struct lw_pv *)lock);
	trace_contention_end(lock, 0);
}

static noinline notrace void __no_caller_saved_registers __lockfunc
pv_spin_unlock_slowpath(struct qspinlock *lock)
{
	lw_pv_unlock_slow((struct lw_pv *)lock);
}

notrace void __no_caller_saved_registers __lockfunc pv_spin_unlock(struct qspinlock *lock)
{
	if (unlikely(lw_word_release((union lw_word *)lock)))
		pv_spin_unlock_slowpath(lock);
}

#ifdef CONFIG_LOCKWORKS_MUTEX
void __lockfunc pv_mutex_lock_slowpath(struct qspinlock *lock, u32 val)
{
	if (hq_spin_lock_taken(lock, val))
		return;
	trace_contention_begin(lock, LCB_F_SPIN);
	lw_mutex_lock_slow((struct lw_mutex *)lock);
	trace_contention_end(lock, 0);
}

static noinline notrace void __no_caller_saved_registers __lockfunc
pv_mutex_unlock_slowpath(struct qspinlock *lock)
{
	lw_mutex_unlock_slow((struct lw_mutex *)lock);
}

/* Also of spinlocks that opted in to HQ. */
notrace void __no_caller_saved_registers __lockfunc pv_mutex_unlock(struct qspinlock *lock)
{
	if (unlikely(!lw_mutex_release((union lw_word *)lock)))
		pv_mutex_unlock_slowpath(lock);
}
#endif
#endif
#endif

/* Paravirt guests have a slow path of their own, which does not reach the hook of CNA. */
static bool __init hook_is_reached(void)
{
#if defined(CONFIG_X86) && defined(CONFIG_PARAVIRT_SPINLOCKS)
	return lw_pv_lock_slowpath() == native_queued_spin_lock_slowpath;
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
		pr_warn("qspinlock=%s refused: use stock or lockworks\n", arg ?: "");
	return 0;
}
early_param("qspinlock", qspinlock_setup);

static enum numa_mode {
	NUMA_AUTO,
	NUMA_ON,
	NUMA_OFF,
	NUMA_CNA,
	NUMA_HQ,
	NUMA_MUTEX
} numa_mode __initdata;

static int __init numa_spinlock_setup(char *arg)
{
	static const char *const names[] = {"auto", "on", "off", "cna", "hq", "mutex"};
	int mode = match_string(names, ARRAY_SIZE(names), arg ?: "");

	if (mode == NUMA_HQ && !IS_ENABLED(CONFIG_HQSPINLOCKS))
		pr_warn("numa_spinlock=hq refused: CONFIG_HQSPINLOCKS is not set\n");
	else if (mode == NUMA_MUTEX && !IS_ENABLED(CONFIG_LOCKWORKS_MUTEX))
		pr_warn("numa_spinlock=mutex refused: CONFIG_LOCKWORKS_MUTEX is not set\n");
	else if (mode >= 0)
		numa_mode = mode;
	else
		pr_warn("numa_spinlock=%s refused: use auto, on, off, cna, hq or mutex\n",
			arg ?: "");
	return 0;
}
early_param("numa_spinlock", numa_spinlock_setup);

/* The user asks for NUMA-aware slow paths of all spinlocks, in guests as well. */
bool __init numa_spinlock_is_forced(void)
{
	return numa_mode == NUMA_ON || numa_mode == NUMA_CNA || numa_mode == NUMA_MUTEX;
}

/*
 * Is this a guest whose virtual CPUs may not be running? Then waiters must halt, or compete for a
 * free lock. They must not queue for a turn.
 */
static bool __init may_be_overcommitted(void)
{
#ifdef virt_spin_lock
	/* The byte lock of guests that have no paravirt spinlocks. */
	if (static_key_enabled(&virt_spin_lock_key))
		return true;
#endif
	return !hook_is_reached() || guest_spinlock == GUEST_SPINLOCK_UNFAIR;
}

static bool __init numa_wanted(enum numa_mode alone)
{
	if (numa_mode == NUMA_AUTO)
		return num_possible_nodes() >= 2 && !may_be_overcommitted();
	return numa_mode == NUMA_ON || numa_mode == alone;
}

static enum numa_spinlock_path __init choose_path(void)
{
#ifdef CONFIG_LOCKWORKS_GUEST
	if (guest_spinlock == GUEST_SPINLOCK_UNFAIR)
		return NUMA_SPINLOCK_UNFAIR;
#endif
#ifdef CONFIG_LOCKWORKS_MUTEX
	if (numa_mode == NUMA_MUTEX)
		return NUMA_SPINLOCK_MUTEX;
#endif
	if (numa_wanted(NUMA_CNA))
		return NUMA_SPINLOCK_CNA;
	if (own_qspinlock && guest_spinlock != GUEST_SPINLOCK_BYTE)
		return NUMA_SPINLOCK_QSPINLOCK;
	return NUMA_SPINLOCK_STOCK;
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
		pr_warn("numa_spinlock_shuffle_reduction=%s refused: use on or off\n", arg ?: "");
	return 0;
}
early_param("numa_spinlock_shuffle_reduction", shuffle_reduction_setup);

static int __init numa_spinlock_init(void)
{
	enum numa_spinlock_path path;
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(lw_kernel_random, cpu) = cpu;

	if (!numa_spinlock_is_queued()) {
		pr_info("CNA, HQ and mutex off: ticket spinlocks are in use\n");
		return 0;
	}

#ifdef CONFIG_HQSPINLOCKS
	WRITE_ONCE(hqlock_on, numa_wanted(NUMA_HQ));
	pr_info("HQ-spinlocks %s\n", str_on_off(hqlock_on));
	if (!hqlock_on &&
	    (!IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_SWITCH) || may_be_overcommitted()))
		static_branch_enable(&hqlock_never_key);
#endif
	if (!hook_is_reached()) {
		pr_info("CNA and mutex off: paravirt spinlocks are in use\n");
		return 0;
	}

	path = choose_path();
	numa_spinlock_chosen = NUMA_SPINLOCK_CHOSEN(path, false);
	pr_info("%s, NUMA threshold %u ms, shuffle reduction %s, %u nodes\n",
		numa_spinlock_names[path], numa_spinlock_tunables.numa_threshold_ms,
		str_on_off(numa_spinlock_tunables.shuffle_reduction), num_possible_nodes());

	/* No other CPU is up yet, so no waiter is on any slow path. */
	if (path != NUMA_SPINLOCK_STOCK || IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_SWITCH))
		static_branch_enable(&numa_spinlock_key);
	return 0;
}
early_initcall(numa_spinlock_init);

#if IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_TEST) || \
	IS_ENABLED(CONFIG_NUMA_AWARE_SPINLOCKS_KUNIT_TEST)
const struct lw_lock_type *numa_spinlock_type(const char *name)
{
	if (!strcmp(name, lw_qspinlock_type.name))
		return &lw_qspinlock_type;
	if (!strcmp(name, lw_cna_type.name))
		return &lw_cna_type;
#ifdef CONFIG_LOCKWORKS_GUEST
	if (!strcmp(name, lw_unfair_type.name))
		return &lw_unfair_type;
	if (!strcmp(name, lw_pv_type.name) && guest_parked_heads)
		return &lw_pv_type;
#endif
#ifdef CONFIG_HQSPINLOCKS
	if (!strcmp(name, lw_hq_type.name))
		return &lw_hq_type;
#endif
#ifdef CONFIG_LOCKWORKS_MUTEX
	if (!strcmp(name, lw_mutex_type.name))
		return &lw_mutex_type;
#endif
#ifdef CONFIG_LOCKWORKS_RWLOCK
	if (!strcmp(name, lw_rwlock_type.name))
		return &lw_rwlock_type;
#endif
	return NULL;
}
EXPORT_SYMBOL_GPL(numa_spinlock_type);
#endif
