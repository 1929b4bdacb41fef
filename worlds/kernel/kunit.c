// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * KUnit tests of all that needs one CPU only: lock, trylock and unlock of each slow path, spinlocks
 * that opt in to HQ, the reader-writer lock, and the ranges of the settings. The conformance test
 * is for contention.
 */
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "lock_type.h"
#include "lockworks_rwlock.h"
#include "tunables_sysctl.h"

static const char *const names[] = {"qspinlock", "cna", "hq", "mutex", "unfair", "pv"};

static void describe(const char *const *name, char *description)
{
	strscpy(description, *name, KUNIT_PARAM_DESC_SIZE);
}
KUNIT_ARRAY_PARAM(lock, names, describe);

static const struct lw_lock_type *type_of(struct kunit *test)
{
	const char *name = *(const char *const *)test->param_value;
	const struct lw_lock_type *type = numa_spinlock_type(name);

	if (!type)
		kunit_skip(test, "%s is not in this kernel, or was not chosen at boot", name);
	return type;
}

/* The state of a lock, as the kernel's functions report it. */
struct state {
	u32 word;
	bool is_locked;
	bool is_contended;
	bool value_is_unlocked;
};

static struct state state_of(struct qspinlock *lock)
{
	return (struct state){
		.word = atomic_read(&lock->val),
		.is_locked = queued_spin_is_locked(lock),
		.is_contended = queued_spin_is_contended(lock),
		.value_is_unlocked = queued_spin_value_unlocked(*lock),
	};
}

static void expect_held(struct kunit *test, struct state state, u32 type_bits)
{
	KUNIT_EXPECT_EQ(test, state.word & _Q_LOCKED_MASK, (u32)_Q_LOCKED_VAL);
	KUNIT_EXPECT_EQ(test, state.word & type_bits, type_bits);
	KUNIT_EXPECT_TRUE(test, state.is_locked);
	KUNIT_EXPECT_FALSE(test, state.is_contended);
	KUNIT_EXPECT_FALSE(test, state.value_is_unlocked);
}

static void expect_free(struct kunit *test, struct state state, u32 type_bits)
{
	KUNIT_EXPECT_EQ(test, state.word & ~(u32)_Q_SERVICE_MASK, 0U);
	KUNIT_EXPECT_EQ(test, state.word & type_bits, type_bits);
	KUNIT_EXPECT_FALSE(test, state.is_locked);
	KUNIT_EXPECT_FALSE(test, state.is_contended);
	KUNIT_EXPECT_TRUE(test, state.value_is_unlocked);
}

/*
 * Preemption is disabled while a lock is held, and a failed expectation may sleep. So what is seen
 * is judged after the unlock.
 */
static void lock_and_unlock(struct kunit *test)
{
	const struct lw_lock_type *type = type_of(test);
	struct qspinlock lock = {.val = ATOMIC_INIT(type->unlocked)};
	struct state held, freed;
	bool again;
	int i;

	KUNIT_ASSERT_EQ(test, type->size, sizeof(lock));
	expect_free(test, state_of(&lock), type->unlocked);
	/* The mutex may treat a CPU that acquires the lock again in a way of its own. */
	for (i = 0; i < 3; i++) {
		preempt_disable();
		type->lock(&lock, NULL);
		held = state_of(&lock);
		again = type->trylock(&lock, NULL);
		type->unlock(&lock, NULL);
		freed = state_of(&lock);
		preempt_enable();
		expect_held(test, held, type->unlocked);
		KUNIT_EXPECT_FALSE(test, again);
		expect_free(test, freed, type->unlocked);
	}
}

static void trylock_and_unlock(struct kunit *test)
{
	const struct lw_lock_type *type = type_of(test);
	struct qspinlock lock = {.val = ATOMIC_INIT(type->unlocked)};
	struct state held, freed;
	bool taken, again;
	int i;

	for (i = 0; i < 3; i++) {
		preempt_disable();
		taken = type->trylock(&lock, NULL);
		held = state_of(&lock);
		again = type->trylock(&lock, NULL);
		if (taken)
			type->unlock(&lock, NULL);
		freed = state_of(&lock);
		preempt_enable();
		KUNIT_EXPECT_TRUE(test, taken);
		expect_held(test, held, type->unlocked);
		KUNIT_EXPECT_FALSE(test, again);
		expect_free(test, freed, type->unlocked);
	}
}

/* An unlocked word with the type bit must not look free to a slow path that does not know it. */
static void type_bits(struct kunit *test)
{
	const struct lw_lock_type *type = type_of(test);

	KUNIT_EXPECT_EQ(test, type->unlocked & ~(u32)_Q_SERVICE_MASK, 0U);
#ifdef CONFIG_HQSPINLOCKS
	KUNIT_EXPECT_EQ(test, type->unlocked, strcmp(type->name, "hq") ? 0U : _Q_HQ_VAL);
#endif
}

/*
 * The word of an unlocked spinlock that opted in. Without HQ it is an ordinary spinlock, and where
 * HQ is off, initialisers in running code make one.
 */
#ifdef CONFIG_HQSPINLOCKS
#define MADE	    (IS_ENABLED(CONFIG_RISCV_COMBO_SPINLOCKS) ? 0U : _Q_HQ_VAL)
#define INITIALISED (hqlock_on ? _Q_HQ_VAL : 0U)
#else
#define MADE	    0U
#define INITIALISED 0U
#endif

static bool can_be_taken(raw_spinlock_t *lock)
{
	if (!arch_spin_trylock(&lock->raw_lock))
		return false;
	arch_spin_unlock(&lock->raw_lock);
	return true;
}

static void expect_opted_in(struct kunit *test, raw_spinlock_t *lock, u32 unlocked)
{
	struct qspinlock *word = &lock->raw_lock;
	struct state held, waited_for;
	bool taken, again;

	KUNIT_EXPECT_EQ(test, (u32)atomic_read(&word->val), unlocked);
	expect_free(test, state_of(word), unlocked);
	preempt_disable();
	taken = can_be_taken(lock);
	preempt_enable();
	KUNIT_EXPECT_TRUE(test, taken);

	raw_spin_lock(lock);
	held = state_of(word);
	again = can_be_taken(lock);
	/* Set the bit that a waiter would set. */
	atomic_or(_Q_PENDING_VAL, &word->val);
	waited_for = state_of(word);
	atomic_andnot(_Q_PENDING_VAL, &word->val);
	raw_spin_unlock(lock);
	expect_held(test, held, unlocked);
	KUNIT_EXPECT_FALSE(test, again);
	KUNIT_EXPECT_TRUE(test, waited_for.is_contended);
	KUNIT_EXPECT_EQ(test, (u32)atomic_read(&word->val), unlocked);
}

static void raw_spinlocks_opt_in(struct kunit *test)
{
	static DEFINE_RAW_SPINLOCK_HQ(made);
	static raw_spinlock_t initialised;

	if (!numa_spinlock_is_queued())
		kunit_skip(test, "spinlocks are ticket spinlocks");
	raw_spin_lock_init_hq(&initialised);
	expect_opted_in(test, &made, MADE);
	expect_opted_in(test, &initialised, INITIALISED);
}

static void spinlocks_opt_in(struct kunit *test)
{
#ifdef CONFIG_PREEMPT_RT
	kunit_skip(test, "waiters of spinlocks sleep");
#else
	static DEFINE_SPINLOCK_HQ(made);
	static spinlock_t initialised;

	if (!numa_spinlock_is_queued())
		kunit_skip(test, "spinlocks are ticket spinlocks");
	spin_lock_init_hq(&initialised);
	expect_opted_in(test, spinlock_check(&made), MADE);
	expect_opted_in(test, spinlock_check(&initialised), INITIALISED);
#endif
}

/*
 * First while readers are counted, then in their slots, then with writers in between. Linux has
 * macros like read_lock(), so such members are called in parentheses.
 */
static void readers_and_writers(struct kunit *test)
{
	const struct lw_lock_type *type = numa_spinlock_type("rwlock");
	struct lw_rwlock lock = {};
	unsigned int wrong = 0;
	int i;

	if (!type)
		kunit_skip(test, "the reader-writer lock is not in this kernel");
	KUNIT_ASSERT_EQ(test, type->size, sizeof(lock));
	preempt_disable();
	for (i = 0; i < 400; i++) {
		(type->read_lock)(&lock);
		wrong += type->trylock(&lock, NULL);
		wrong += !(type->read_trylock)(&lock);
		(type->read_unlock)(&lock);
		wrong += type->trylock(&lock, NULL);
		(type->read_unlock)(&lock);
		if (i < 200)
			continue;
		type->lock(&lock, NULL);
		wrong += (type->read_trylock)(&lock);
		wrong += type->trylock(&lock, NULL);
		type->unlock(&lock, NULL);
		wrong += !type->trylock(&lock, NULL);
		type->unlock(&lock, NULL);
	}
	preempt_enable();
	KUNIT_EXPECT_EQ(test, wrong, 0U);
}

enum {
#define LW_TUNABLE(tunable, ...) SETTING_##tunable,
#include "tunables_list.h"
	SETTINGS
};

/* All settings, with values of their own, so that no lock reads those that the test writes. */
static struct lw_tunables values;
static SYSCTL_TUNABLES(SETTINGS) settings = {.entries = {
#define LW_TUNABLE(tunable, user_value, value, largest, ...) \
	SYSCTL_TUNABLE_IN(values, tunable, value, largest),
#include "tunables_list.h"
					     }};

static int write_setting(struct ctl_table *setting, unsigned long value)
{
	char text[24];
	size_t length = scnprintf(text, sizeof(text), "%lu\n", value);
	loff_t at = 0;

	return setting->proc_handler(setting, 1, text, &length, &at);
}

static void settings_have_ranges(struct kunit *test)
{
	int i;

	for (i = 0; i < SETTINGS; i++) {
		struct ctl_table *setting = &settings.entries[i];
		unsigned long *value = setting->data;
		unsigned long largest = *(unsigned long *)setting->extra2;

		KUNIT_EXPECT_EQ_MSG(test, write_setting(setting, largest), 0, "%s",
				    setting->procname);
		KUNIT_EXPECT_EQ_MSG(test, *value, largest, "%s", setting->procname);
		KUNIT_EXPECT_EQ_MSG(test, write_setting(setting, largest + 1), -EINVAL, "%s",
				    setting->procname);
		KUNIT_EXPECT_EQ_MSG(test, *value, largest, "%s", setting->procname);
		KUNIT_EXPECT_EQ_MSG(test, write_setting(setting, 0), 0, "%s", setting->procname);
		KUNIT_EXPECT_EQ_MSG(test, *value, 0UL, "%s", setting->procname);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(lock_and_unlock, lock_gen_params),
	KUNIT_CASE_PARAM(trylock_and_unlock, lock_gen_params),
	KUNIT_CASE_PARAM(type_bits, lock_gen_params),
	KUNIT_CASE(raw_spinlocks_opt_in),
	KUNIT_CASE(spinlocks_opt_in),
	KUNIT_CASE(readers_and_writers),
	KUNIT_CASE(settings_have_ranges),
	{},
};

static struct kunit_suite suite = {
	.name = "lockworks",
	.test_cases = cases,
};
kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of Lockworks' queued spinlocks");
MODULE_LICENSE("Dual BSD/GPL");
