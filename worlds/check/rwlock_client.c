// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads that use a reader-writer lock. Writers acquire it at once, or as upgradable holders that
 * upgrade and then downgrade, or only downgrade. Readers acquire it once, or twice.
 *
 * A writer writes the data, and all others read it. So a thread that is let in too early, or not
 * ordered after the one before it, is a data race.
 */
#include "client.h"
#include "rwlock.h"
#include "surroundings.h"

/* The lock of an acquisition: one, or two in turns. */
struct subject {
	const struct lw_check_client *client;
	struct lw_rwlock *lock;
	uint32_t number;
};

static void holds_alone(const struct subject *on)
{
	lw_check_note(LW_CHECK_ACQUIRED, on->number, 0);
	lw_plain_write(on->client->data[on->number], 0);
	lw_check_note(LW_CHECK_RELEASE, on->number, 0);
}

static void reads(const struct subject *on)
{
	lw_check_note(LW_CHECK_READS, on->number, 0);
	(void)lw_plain_read(on->client->data[on->number]);
}

static void write_at_once(const struct subject *on, bool try)
{
	if (on->client->cancel) {
		if (!lw_rwlock_lock_limited(on->lock, &lw_check_wait_limit))
			return;
	} else if (!try || !lw_rwlock_trylock(on->lock)) {
		lw_rwlock_lock(on->lock);
	}
	holds_alone(on);
	lw_rwlock_unlock(on->lock);
}

static void write_by_upgrade(const struct subject *on, bool try)
{
	if (!try || !lw_rwlock_upgradable_trylock(on->lock))
		lw_rwlock_upgradable_lock(on->lock);
	reads(on);
	if (!try || !lw_rwlock_try_upgrade(on->lock)) {
		if (try) {
			lw_check_note(LW_CHECK_RELEASE, on->number, 0);
			lw_rwlock_upgradable_unlock(on->lock);
			return;
		}
		lw_rwlock_upgrade(on->lock);
	}
	holds_alone(on);
	lw_rwlock_downgrade(on->lock);
	reads(on);
	lw_check_note(LW_CHECK_RELEASE, on->number, 0);
	lw_rwlock_read_unlock(on->lock);
}

static void read_by_downgrade(const struct subject *on)
{
	lw_rwlock_upgradable_lock(on->lock);
	lw_rwlock_upgradable_downgrade(on->lock);
	reads(on);
	lw_check_note(LW_CHECK_RELEASE, on->number, 0);
	lw_rwlock_read_unlock(on->lock);
}

/* A thread that reads the lock already is never stopped, with a slot or without one. */
static void read_again(const struct subject *on)
{
	/* Twice, because the slot may have lost its announcement or note of the lock after once. */
	for (int i = 0; i < 2; i++) {
		if (lw_rwlock_read_trylock(on->lock))
			lw_rwlock_read_unlock(on->lock);
		else
			lw_check_broken("a thread that reads a lock cannot read it again");
	}
}

static void read_once_or_twice(const struct subject *on, bool try, bool twice)
{
	if (on->client->cancel) {
		if (!lw_rwlock_read_lock_limited(on->lock, &lw_check_wait_limit))
			return;
	} else if (!try || !lw_rwlock_read_trylock(on->lock)) {
		lw_rwlock_read_lock(on->lock);
	}
	reads(on);
	if (twice)
		read_again(on);
	lw_check_note(LW_CHECK_RELEASE, on->number, 0);
	lw_rwlock_read_unlock(on->lock);
}

void lw_check_rwlock_thread(const struct lw_check_client *client, uint32_t thread)
{
	for (uint32_t i = 0; i < client->acquisitions; i++) {
		bool odd = i % 2 != 0, try = client->trylock && (thread + i) % 2 != 0;
		uint32_t number = client->lock_count > 1 && odd ? LW_CHECK_SECOND_LOCK : 0;
		struct subject on = {client, client->locks[number], number};

		lw_check_note(LW_CHECK_BEGIN, number, 0);
		if (thread >= client->threads - client->readers)
			read_once_or_twice(&on, try, odd);
		else if (odd && client->cancel)
			read_by_downgrade(&on);
		else if (odd)
			write_by_upgrade(&on, try);
		else
			write_at_once(&on, try);
		lw_check_note(LW_CHECK_RELEASED, number, 0);
	}
}
