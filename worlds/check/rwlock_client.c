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

static struct lw_rwlock *rwlock(const struct lw_check_client *client)
{
	return client->locks[0];
}

static void holds_alone(const struct lw_check_client *client)
{
	lw_check_note(LW_CHECK_ACQUIRED, 0, 0);
	lw_plain_write(client->data[0], 0);
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
}

static void reads(const struct lw_check_client *client)
{
	lw_check_note(LW_CHECK_READS, 0, 0);
	(void)lw_plain_read(client->data[0]);
}

static void write_at_once(const struct lw_check_client *client, bool try)
{
	if (client->cancel) {
		if (!lw_rwlock_lock_limited(rwlock(client), &lw_check_wait_limit))
			return;
	} else if (!try || !lw_rwlock_trylock(rwlock(client))) {
		lw_rwlock_lock(rwlock(client));
	}
	holds_alone(client);
	lw_rwlock_unlock(rwlock(client));
}

static void write_by_upgrade(const struct lw_check_client *client, bool try)
{
	if (!try || !lw_rwlock_upgradable_trylock(rwlock(client)))
		lw_rwlock_upgradable_lock(rwlock(client));
	reads(client);
	if (!try || !lw_rwlock_try_upgrade(rwlock(client))) {
		if (try) {
			lw_check_note(LW_CHECK_RELEASE, 0, 0);
			lw_rwlock_upgradable_unlock(rwlock(client));
			return;
		}
		lw_rwlock_upgrade(rwlock(client));
	}
	holds_alone(client);
	lw_rwlock_downgrade(rwlock(client));
	reads(client);
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
	lw_rwlock_read_unlock(rwlock(client));
}

static void read_by_downgrade(const struct lw_check_client *client)
{
	lw_rwlock_upgradable_lock(rwlock(client));
	lw_rwlock_upgradable_downgrade(rwlock(client));
	reads(client);
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
	lw_rwlock_read_unlock(rwlock(client));
}

/* A thread that reads the lock already is never stopped. */
static void read_again(const struct lw_check_client *client)
{
	if (lw_rwlock_read_trylock(rwlock(client)))
		lw_rwlock_read_unlock(rwlock(client));
	else if (lw_own_reads())
		lw_check_broken("a thread that reads a lock cannot read it again");
}

static void read_once_or_twice(const struct lw_check_client *client, bool try, bool twice)
{
	if (client->cancel) {
		if (!lw_rwlock_read_lock_limited(rwlock(client), &lw_check_wait_limit))
			return;
	} else if (!try || !lw_rwlock_read_trylock(rwlock(client))) {
		lw_rwlock_read_lock(rwlock(client));
	}
	reads(client);
	if (twice)
		read_again(client);
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
	lw_rwlock_read_unlock(rwlock(client));
}

void lw_check_rwlock_thread(const struct lw_check_client *client, uint32_t thread)
{
	for (uint32_t i = 0; i < client->acquisitions; i++) {
		bool odd = i % 2 != 0, try = client->trylock && (thread + i) % 2 != 0;

		lw_check_note(LW_CHECK_BEGIN, 0, 0);
		if (thread >= client->threads - client->readers)
			read_once_or_twice(client, try, odd);
		else if (odd && client->cancel)
			read_by_downgrade(client);
		else if (odd)
			write_by_upgrade(client, try);
		else
			write_at_once(client, try);
		lw_check_note(LW_CHECK_RELEASED, 0, 0);
	}
}
