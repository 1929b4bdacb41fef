// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The conformance client that all of Lockworks' worlds share. It runs on kernel threads,
 * while softirqs, hardirqs and NMIs on the same CPUs wait for other locks. With several
 * CPUs, all queue nodes of a CPU are in use at times. A lock that has readers is also read, by
 * tasks and interrupts.
 *
 *   insmod lockworks_test.ko lock=cna threads=8 rounds=1000
 */
#define pr_fmt(fmt) "lockworks_test: " fmt

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/nmi.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/version.h>
#ifdef CONFIG_X86
#include <asm/apic.h>
#endif

#include "conformance.h"
#include "numa_spinlock.h"
#include "busted.c"

static char *lock = "cna";
module_param(lock, charp, 0444);
MODULE_PARM_DESC(lock, "qspinlock, cna, hq, mutex, rwlock, unfair, pv or busted");

static unsigned int threads;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "kernel threads, spread over the CPUs; 0: one for each CPU");

static unsigned int rounds = 1000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "rounds of each thread");

static unsigned int depth = LW_CLIENT_LOCKS;
module_param(depth, uint, 0444);
MODULE_PARM_DESC(depth, "number of locks, which are nested; 1 to 6");

static const struct lw_lock_type *type;

/* The number of contexts of a CPU that are acquiring a lock now, one interrupting another. */
static DEFINE_PER_CPU(unsigned int, acquiring);
static atomic_t deepest;

static void count_context(void)
{
	int depth = this_cpu_inc_return(acquiring);
	int seen = atomic_read(&deepest);

	while (depth > seen && !atomic_try_cmpxchg(&deepest, &seen, depth))
		;
}

static void acquire(void *word, void *node)
{
	count_context();
	type->lock(word, node);
	this_cpu_dec(acquiring);
}

/* Linux has macros like read_lock(), so such members are called in parentheses. */
static void acquire_to_read(void *word)
{
	count_context();
	(type->read_lock)(word);
	this_cpu_dec(acquiring);
}

/* Preemption must be disabled from before the task queues until it has released the lock. */
static void lock_in_task(void *word, void *node)
{
	preempt_disable();
	acquire(word, node);
}

static bool trylock_in_task(void *word, void *node)
{
	preempt_disable();
	if (type->trylock(word, node))
		return true;
	preempt_enable();
	return false;
}

static void unlock_in_task(void *word, void *node)
{
	type->unlock(word, node);
	preempt_enable();
}

static atomic_long_t reads_in_tasks;

static void read_lock_in_task(void *word)
{
	preempt_disable();
	acquire_to_read(word);
}

static bool read_trylock_in_task(void *word)
{
	preempt_disable();
	if ((type->read_trylock)(word))
		return true;
	preempt_enable();
	return false;
}

static void read_unlock_in_task(void *word)
{
	(type->read_unlock)(word);
	preempt_enable();
	atomic_long_inc(&reads_in_tasks);
}

static struct lw_lock_type type_in_task;

/* A lock: its first four bytes, and room for more. */
struct padded_word {
	lw_atomic(uint32_t) word;
} ____cacheline_aligned;

static struct padded_word task_words[LW_CLIENT_LOCKS];
static struct lw_client_memory task_memory;

static void let_others_in(void)
{
	cpu_relax();
}

static void vary(void)
{
	cond_resched();
}

static struct lw_client client = {
	.type = &type_in_task,
	.memory = &task_memory,
	.inside = let_others_in,
	.outside = vary,
};

/* The state that all handlers of one kind of interrupt share. */
struct level {
	const char *name;
	struct padded_word word;
	unsigned int owner; /* CPU + 1; not atomic, so that KCSAN checks it, too */
	unsigned long count;
	atomic_long_t entered;
	atomic_long_t reads;
	atomic_long_t violations;
};

enum { SOFTIRQ, HARDIRQ, NMI, LEVELS };

static struct level levels[LEVELS] = {
	[SOFTIRQ] = {.name = "softirqs"},
	[HARDIRQ] = {.name = "hardirqs"},
	[NMI] = {.name = "NMIs"},
};

static void nmi_others(void);

static void write_level(struct level *level)
{
	unsigned int self = smp_processor_id() + 1;

	acquire(&level->word, NULL);
	if (level->owner)
		atomic_long_inc(&level->violations);
	level->owner = self;
	level->count++;
	udelay(1);
	if (level == &levels[HARDIRQ])
		nmi_others();
	if (level->owner != self)
		atomic_long_inc(&level->violations);
	level->owner = 0;
	type->unlock(&level->word, NULL);
}

/* Other readers may come in meanwhile, and this one once more, but no writer. */
static void read_level(struct level *level)
{
	unsigned long count;

	acquire_to_read(&level->word);
	count = level->count;
	if (level->owner)
		atomic_long_inc(&level->violations);
	udelay(1);
	if (level == &levels[HARDIRQ])
		nmi_others();
	if ((type->read_trylock)(&level->word))
		(type->read_unlock)(&level->word);
	else
		atomic_long_inc(&level->violations);
	if (level->owner || level->count != count)
		atomic_long_inc(&level->violations);
	(type->read_unlock)(&level->word);
	atomic_long_inc(&level->reads);
}

/*
 * Each level has a lock of its own: a handler must not acquire a lock that the code it interrupts
 * may hold. Half of the time handlers only read, until the lock lets readers use their own slots.
 */
static void interrupt(struct level *level)
{
	unsigned long number = atomic_long_inc_return(&level->entered);

	preempt_disable(); /* PREEMPT_RT runs softirqs in threads */
	if (type->read_lock && (number / 128 % 2 || number % 2))
		read_level(level);
	else
		write_level(level);
	preempt_enable();
}

#ifdef CONFIG_X86
static DEFINE_PER_CPU(atomic_t, nmi_expected);

static int nmi_handler(unsigned int reason, struct pt_regs *regs)
{
	if (!atomic_xchg(this_cpu_ptr(&nmi_expected), 0))
		return NMI_DONE;
	interrupt(&levels[NMI]);
	return NMI_HANDLED;
}

static int nmi_begin(void)
{
	return register_nmi_handler(NMI_LOCAL, nmi_handler, 0, "lockworks_test");
}

static void nmi_end(void)
{
	unregister_nmi_handler(NMI_LOCAL, "lockworks_test");
}

static void nmi_raise(unsigned int cpu)
{
	if (!atomic_xchg(per_cpu_ptr(&nmi_expected, cpu), 1))
		apic->send_IPI(cpu, NMI_VECTOR);
}
#else
static int nmi_begin(void)
{
	return 0;
}

static void nmi_end(void)
{
}

static void nmi_raise(unsigned int cpu)
{
}
#endif

/* The NMI interrupts waiters in hardirqs, so that their CPUs use the last queue node. */
static void nmi_others(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		nmi_raise(cpu);
}

struct timers {
	struct hrtimer hard;
	struct hrtimer soft;
};

static DEFINE_PER_CPU(struct timers, timers);

/*
 * Long enough for tasks to make progress between interrupts, also in an emulator, and
 * without a common divisor, so that each kind interrupts the other at any point.
 */
#define HARD_PERIOD ns_to_ktime(509 * NSEC_PER_USEC)
#define SOFT_PERIOD ns_to_ktime(373 * NSEC_PER_USEC)

static enum hrtimer_restart hard_expired(struct hrtimer *timer)
{
	interrupt(&levels[HARDIRQ]);
	hrtimer_forward_now(timer, HARD_PERIOD);
	return HRTIMER_RESTART;
}

static enum hrtimer_restart soft_expired(struct hrtimer *timer)
{
	interrupt(&levels[SOFTIRQ]);
	hrtimer_forward_now(timer, SOFT_PERIOD);
	return HRTIMER_RESTART;
}

static void timer_begin(struct hrtimer *timer, enum hrtimer_restart (*expired)(struct hrtimer *),
			ktime_t period, enum hrtimer_mode mode)
{
#if KERNEL_VERSION(6, 13, 0) <= LINUX_VERSION_CODE
	hrtimer_setup(timer, expired, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = expired;
#endif
	hrtimer_start(timer, period, mode);
}

static void timers_begin(void *unused)
{
	struct timers *own = this_cpu_ptr(&timers);

	timer_begin(&own->hard, hard_expired, HARD_PERIOD, HRTIMER_MODE_REL_PINNED_HARD);
	timer_begin(&own->soft, soft_expired, SOFT_PERIOD, HRTIMER_MODE_REL_PINNED_SOFT);
}

static void timers_end(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		hrtimer_cancel(&per_cpu(timers, cpu).hard);
		hrtimer_cancel(&per_cpu(timers, cpu).soft);
	}
}

struct worker {
	unsigned int number;
	struct completion done;
};

static atomic_t violations;

static int work(void *data)
{
	struct worker *worker = data;

	atomic_add(lw_client_thread(&client, worker->number), &violations);
	kthread_complete_and_exit(&worker->done, 0);
}

static int run_threads(void)
{
	struct task_struct **tasks = kcalloc(threads, sizeof(*tasks), GFP_KERNEL);
	struct worker *workers = kcalloc(threads, sizeof(*workers), GFP_KERNEL);
	unsigned int made, i;
	int cpu = -1;
	int error = tasks && workers ? 0 : -ENOMEM;

	for (made = 0; !error && made < threads; made++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		workers[made].number = made;
		init_completion(&workers[made].done);
		tasks[made] = kthread_create(work, &workers[made], "lockworks_test/%u", made);
		if (IS_ERR(tasks[made])) {
			error = PTR_ERR(tasks[made]);
			break;
		}
		kthread_bind(tasks[made], cpu);
	}
	for (i = 0; i < made; i++) {
		if (error)
			kthread_stop(tasks[i]);
		else
			wake_up_process(tasks[i]);
	}
	/* Waits a second at a time, so that the detector of hung tasks does not report this task.
	 */
	for (i = 0; !error && i < made; i++) {
		while (!wait_for_completion_timeout(&workers[i].done, HZ))
			;
	}
	kfree(workers);
	kfree(tasks);
	return error;
}

/* A lock keeps its type bits, whatever was done to it. */
static bool lost_type(struct padded_word *padded)
{
	return (lw_load(&padded->word, relaxed) & type->unlocked) != type->unlocked;
}

static int __init test_init(void)
{
	long all, reads = 0;
	int error, i;

	cpus_read_lock(); /* the timers run on all CPUs that are online */
	type = !strcmp(lock, "busted") ? &lw_busted_type : numa_spinlock_type(lock);
	error = -EINVAL;
	if (!type || !rounds || depth < 1 || depth > LW_CLIENT_LOCKS)
		goto out;
	if (!threads)
		threads = num_online_cpus();

	type_in_task = *type;
	type_in_task.lock = lock_in_task;
	type_in_task.trylock = trylock_in_task;
	type_in_task.unlock = unlock_in_task;
	if (type->read_lock) {
		type_in_task.read_lock = read_lock_in_task;
		type_in_task.read_trylock = read_trylock_in_task;
		type_in_task.read_unlock = read_unlock_in_task;
	}
	client.threads = threads;
	client.rounds = rounds;
	client.depth = depth;
	for (i = 0; i < LW_CLIENT_LOCKS; i++) {
		lw_store(&task_words[i].word, type->unlocked, relaxed);
		client.locks[i] = &task_words[i];
	}
	for (i = 0; i < LEVELS; i++)
		lw_store(&levels[i].word.word, type->unlocked, relaxed);

	error = nmi_begin();
	if (error)
		goto out;
	on_each_cpu(timers_begin, NULL, true);
	error = run_threads();
	timers_end();
	nmi_end();
	if (error)
		goto out;

	all = atomic_read(&violations);
	for (i = 0; i < LW_CLIENT_LOCKS; i++)
		all += lost_type(&task_words[i]);
	for (i = 0; i < LEVELS; i++) {
		struct level *level = &levels[i];
		long entered = atomic_long_read(&level->entered);

		reads += atomic_long_read(&level->reads);
		all += atomic_long_read(&level->violations);
		all += level->count + atomic_long_read(&level->reads) != entered;
		all += lost_type(&level->word);
		pr_info("%s: %ld %s\n", lock, entered, level->name);
	}
	if (type->read_lock)
		pr_info("%s: %ld reads in tasks, %ld reads in interrupts\n", lock,
			atomic_long_read(&reads_in_tasks), reads);
	pr_info("%s: %d contexts nested at most\n", lock, atomic_read(&deepest));
	pr_info("%s: %u threads, %u rounds: %ld violations\n", lock, threads, rounds, all);
out:
	cpus_read_unlock();
	if (error)
		pr_err("cannot test %s: error %d\n", lock, error);
	return error;
}

static void __exit test_exit(void)
{
}

module_init(test_init);
module_exit(test_exit);
MODULE_DESCRIPTION("Conformance test of Lockworks' queued spinlocks");
MODULE_LICENSE("Dual BSD/GPL");
