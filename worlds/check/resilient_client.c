// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads that use a resilient lock, and interruptions that try the locks of the code that they
 * interrupt. An acquisition may fail, but only for a reason that there is:
 *
 *   AA       a thread that holds the lock is told so, at once; one that has nothing to do with the
 *            lock is not; a thread without a slot has no table of held locks, so it cannot be told
 *   ABBA     only if the thread has another lock, and threads take the two in opposite orders
 *   timeout  the engine lets no deadline pass while a thread waits for itself, or two threads for
 *            each other; so a deadlock that is not detected is a wait without end
 *
 * With one lock, every other acquisition tries to acquire the lock a second time. With two locks,
 * threads take both, in opposite orders; every other time they release the first one first. With
 * trylock, all threads take them in the same order. With three locks they take one or two of them,
 * always in the same order, so that no two threads wait for each other.
 */
#include "client.h"
#include "resilience.h"
#include "resilient_mutants.h"
#include "rqspinlock.h"
#include "surroundings.h"

static const struct lw_resilient_lock *operations(const struct lw_check_client *client)
{
	const struct lw_resilient_lock *lock = lw_resilient_locks;

	while (lock->type != client->type)
		lock++;
	return lock;
}

static int resilient_acquire(const struct lw_check_client *client, uint32_t lock)
{
	if (client->functions)
		return client->functions->acquire(client->locks[lock]);
	return operations(client)->acquire(client->locks[lock]);
}

static void resilient_unlock(const struct lw_check_client *client, uint32_t lock)
{
	if (client->functions)
		client->type->unlock(client->locks[lock], NULL);
	else
		operations(client)->unlock(client->locks[lock]);
}

static uint32_t other_lock(uint32_t lock)
{
	return LW_CHECK_SECOND_LOCK - lock;
}

/* Judge a failure. `had`: lw_check_had() of the lock and of the other lock, before. */
static void judge(const struct lw_check_client *client, int result, uint32_t had,
		  uint32_t had_other)
{
	if (had == LW_CHECK_HELD && lw_own_held() && result != LW_RQ_AA)
		lw_check_broken("a thread that holds the lock is not told so");
	if (!had && result == LW_RQ_AA)
		lw_check_broken("a thread is told that it holds a lock, and does not");
	if (result == LW_RQ_ABBA && (client->lock_count != 2 || client->trylock || !had_other))
		lw_check_broken("a deadlock of two threads is reported that is none");
}

/* Acquire a lock, whose notes have the node `node`; false if that fails. */
static bool take(const struct lw_check_client *client, uint32_t lock, uint32_t node, bool try)
{
	uint32_t had = lw_check_had(lock), had_other = lw_check_had(other_lock(lock));
	int result = LW_RQ_ACQUIRED;

	lw_check_note(LW_CHECK_BEGIN, lock, node);
	if (!try || !client->type->trylock(client->locks[lock], NULL))
		result = resilient_acquire(client, lock);
	judge(client, result, had, had_other);
	if (result != LW_RQ_ACQUIRED) {
		lw_check_note(LW_CHECK_RELEASED, lock, node);
		return false;
	}
	lw_check_note(LW_CHECK_ACQUIRED, lock, node);
	lw_plain_write(client->data[lock], 0);
	return true;
}

static void give_back(const struct lw_check_client *client, uint32_t lock, uint32_t node)
{
	lw_check_note(LW_CHECK_RELEASE, lock, node);
	resilient_unlock(client, lock);
	lw_check_note(LW_CHECK_RELEASED, lock, node);
}

static void take_one(const struct lw_check_client *client, bool try, bool twice)
{
	if (!take(client, 0, 0, try))
		return;
	if (twice)
		judge(client, resilient_acquire(client, 0), LW_CHECK_HELD, 0);
	give_back(client, 0, 0);
}

static void take_both(const struct lw_check_client *client, uint32_t first, uint32_t second,
		      bool try, bool in_order)
{
	if (!take(client, first, first, try))
		return;
	if (take(client, second, second, false)) {
		give_back(client, in_order ? first : second, in_order ? first : second);
		give_back(client, in_order ? second : first, in_order ? second : first);
	} else {
		give_back(client, first, first);
	}
}

/* The third lock comes before the second, and that one before the first. */
static void take_of_three(const struct lw_check_client *client, uint32_t thread, bool try, bool odd)
{
	if (thread % 2 != 0)
		take_both(client, LW_CHECK_SECOND_LOCK, 0, try, false);
	else if (!odd)
		take_both(client, LW_CHECK_THIRD_LOCK, LW_CHECK_SECOND_LOCK, try, false);
	else if (lw_choose(2))
		take_both(client, LW_CHECK_THIRD_LOCK, 0, try, true);
	else
		take_one(client, try, false);
}

void lw_check_resilient_thread(const struct lw_check_client *client, uint32_t thread)
{
	for (uint32_t i = 0; i < client->acquisitions; i++) {
		bool odd = i % 2 != 0, try = client->trylock && (thread + i) % 2 != 0;

		uint32_t first = thread % 2 == 0 || client->trylock ? 0 : LW_CHECK_SECOND_LOCK;

		if (client->lock_count == 1)
			take_one(client, try, odd);
		else if (client->lock_count == 2)
			take_both(client, first, other_lock(first), try, odd && !client->trylock);
		else
			take_of_three(client, thread, try, odd);
	}
}

void lw_check_resilient_interruption(const struct lw_check_client *client, uint32_t level)
{
	uint32_t lock = client->lock_count > 1 && lw_choose(2) ? LW_CHECK_SECOND_LOCK : 0;

	if (take(client, lock, LW_CHECK_LOCKS + level, client->trylock))
		give_back(client, lock, LW_CHECK_LOCKS + level);
}
