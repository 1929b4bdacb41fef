// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "client.h"

const struct lw_wait_limit lw_check_wait_limit;

enum how {
	WAIT,	   /* without a limit */
	TRY_FIRST, /* and wait if that fails */
	ONLY_TRY,
	WAIT_CANCELLED, /* wait, and have the wait cancelled at any moment or never */
};

static void one_acquisition(const struct lw_check_client *client, uint32_t lock, uint32_t i,
			    enum how how)
{
	const struct lw_lock_type *type = client->type;
	void *node = lw_check_lent_node(i);

	lw_check_note(LW_CHECK_BEGIN, lock, i);
	if (how == WAIT_CANCELLED) {
		if (!type->lock_limited(client->locks[lock], &lw_check_wait_limit))
			goto released;
	} else if (how == WAIT || !type->trylock(client->locks[lock], node)) {
		if (how == ONLY_TRY)
			goto released;
		type->lock(client->locks[lock], node);
	}
	lw_check_note(LW_CHECK_ACQUIRED, lock, i);
	/* Several threads have a token of a semaphore at once. */
	if (client->tokens <= 1)
		lw_plain_write(client->data[lock], 0);
	lw_check_note(LW_CHECK_RELEASE, lock, i);
	type->unlock(client->locks[lock], node);
released:
	lw_check_note(LW_CHECK_RELEASED, lock, i);
}

static enum how how_to_acquire(const struct lw_check_client *client, uint32_t n)
{
	if (client->cancel)
		return WAIT_CANCELLED;
	return client->trylock && n % 2 != 0 ? TRY_FIRST : WAIT;
}

static void one_read(const struct lw_check_client *client, uint32_t lock, enum how how)
{
	const struct lw_lock_type *type = client->type;

	lw_check_note(LW_CHECK_BEGIN, lock, 0);
	if (how == WAIT_CANCELLED && type->read_lock_limited) {
		if (!type->read_lock_limited(client->locks[lock], &lw_check_wait_limit))
			goto released;
	} else if (how != TRY_FIRST || !type->read_trylock(client->locks[lock])) {
		type->read_lock(client->locks[lock]);
	}
	lw_check_note(LW_CHECK_READS, lock, 0);
	(void)lw_plain_read(client->data[lock]);
	lw_check_note(LW_CHECK_RELEASE, lock, 0);
	type->read_unlock(client->locks[lock]);
released:
	lw_check_note(LW_CHECK_RELEASED, lock, 0);
}

/* Take all tokens of a semaphore at once: if one was lost, this waits for ever. */
static void take_all(const struct lw_check_client *client)
{
	void *node = lw_check_lent_node(0);

	lw_check_note(LW_CHECK_BEGIN, 0, 0);
	for (uint32_t i = 0; i < client->tokens; i++)
		client->type->lock(client->locks[0], node);
	for (uint32_t i = 0; i < client->tokens; i++)
		client->type->unlock(client->locks[0], node);
	lw_check_note(LW_CHECK_RELEASED, 0, 0);
}

void lw_check_thread(const struct lw_check_client *client, uint32_t thread)
{
	bool reads = thread >= client->threads - client->readers;

	for (uint32_t i = 0; i < client->acquisitions; i++) {
		uint32_t lock = client->lock_count > 1 && i % 2 != 0 ? LW_CHECK_SECOND_LOCK : 0;
		enum how how = how_to_acquire(client, thread + i);

		if (reads)
			one_read(client, lock, how);
		else
			one_acquisition(client, lock, 0, how);
	}
	/* One thread: two that have a part of them each would wait for each other. */
	if (thread == 0 && client->tokens > 1)
		take_all(client);
}

void lw_check_interruption(const struct lw_check_client *client, uint32_t level)
{
	if (client->type->traits & LW_RESILIENT) {
		lw_check_resilient_interruption(client, level);
		return;
	}
	if (client->trylock && !(client->type->traits & LW_NOT_IN_HANDLERS))
		one_acquisition(client, 0, LW_CHECK_LOCKS + level, ONLY_TRY);
	one_acquisition(client, level, level, WAIT);
}
