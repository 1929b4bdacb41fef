// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads that use a condition variable. Thread 0 provides a token; the others wait for the token,
 * or their waits are cancelled.
 *
 * After a signal, each thread passes the signal on. So a signal that is lost, or consumed by a
 * cancelled waiter, leaves a thread waiting for ever.
 *
 * The last thread to leave destroys the condition variable. So does thread 0 after a broadcast to
 * all others. The destroying thread then writes the memory, which no other thread may change.
 *
 * The condition variable is lw_cond with an lw_tas, or that of a source with its own mutex. The
 * latter is not destroyed.
 */
#include "client.h"
#include "cond.h"
#include "surroundings.h"
#include "tas.h"

enum { NONE, SIGNAL, BROADCAST };

static void acquire(const struct lw_check_client *client)
{
	if (!client->functions) {
		lw_tas_lock((struct lw_tas *)client->locks[0]);
		return;
	}
	lw_check_note(LW_CHECK_BEGIN, 0, 0);
	client->type->lock(client->locks[0], lw_check_lent_node(0));
	lw_check_note(LW_CHECK_ACQUIRED, 0, 0);
}

static void release(const struct lw_check_client *client)
{
	if (!client->functions) {
		lw_tas_unlock((struct lw_tas *)client->locks[0]);
		return;
	}
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
	client->type->unlock(client->locks[0], lw_check_lent_node(0));
	lw_check_note(LW_CHECK_RELEASED, 0, 0);
}

/* Choose how waiters are woken. */
static uint32_t choose(const struct lw_check_client *client)
{
	const struct lw_check_functions *own = client->functions;

	if (own && !own->broadcast)
		return SIGNAL;
	if (own && !own->signal)
		return BROADCAST;
	return SIGNAL + lw_choose(2);
}

static void wake(const struct lw_check_client *client, uint32_t how)
{
	const struct lw_check_functions *own = client->functions;
	void *cond = client->locks[LW_CHECK_COND];

	if (own)
		(how == SIGNAL ? own->signal : own->broadcast)(client->locks[0],
							       lw_check_lent_node(0), cond);
	else if (how == SIGNAL)
		lw_cond_signal(cond);
	else
		lw_cond_broadcast(cond);
}

static void add(uint32_t *data, uint32_t n)
{
	lw_plain_write(data, lw_plain_read(data) + n);
}

/* Leave the condition variable for good; true for the last thread. */
static bool leave(const struct lw_check_client *client)
{
	uint32_t *left = client->data[1];

	add(left, 1);
	return lw_plain_read(left) == client->threads;
}

static void destroy(const struct lw_check_client *client)
{
	struct lw_cond *cond = client->locks[LW_CHECK_COND];

	if (client->functions)
		return;
	lw_cond_destroy(cond);
	lw_check_note(LW_CHECK_DESTROYED, LW_CHECK_COND, 0);
	lw_field_store(&cond->lock.word, locked, LW_LOCKED, relaxed);
	if (lw_load(&cond->lock.word.val, relaxed) != LW_LOCKED)
		lw_check_broken("a thread changes the memory of a destroyed condition variable");
	lw_field_store(&cond->lock.word, locked, 0, relaxed);
}

static void provide(const struct lw_check_client *client)
{
	uint32_t *waiting = client->data[2];
	uint32_t how = choose(client);
	bool all_wait, early, last = false;

	acquire(client);
	lw_plain_write(client->data[0], how);
	/* If all others wait, none can leave before the signal, so we may leave before it. */
	all_wait = lw_plain_read(waiting) == client->threads - 1 && !lw_plain_read(client->data[1]);
	early = all_wait && !client->cancel;
	if (early)
		last = leave(client);
	release(client);
	wake(client, how);
	/* Cancelled waiters may have left the queue without having returned: destroying waits. */
	if (all_wait && client->cancel && how == BROADCAST) {
		destroy(client);
		return;
	}
	if (!early) {
		acquire(client);
		last = leave(client);
		release(client);
	}
	if (last)
		destroy(client);
}

static bool wait(const struct lw_check_client *client)
{
	struct lw_cond_waiter *waiter = lw_check_lent_node(0);
	bool signalled;

	if (client->functions) {
		lw_check_note(LW_CHECK_RELEASE, 0, 0);
		client->functions->wait(client->locks[0], waiter, client->locks[LW_CHECK_COND]);
		lw_check_note(LW_CHECK_ACQUIRED, 0, 0);
		return true;
	}
	lw_check_note(LW_CHECK_BEGIN, LW_CHECK_COND, 0);
	lw_cond_begin(client->locks[LW_CHECK_COND], waiter);
	release(client);
	lw_cond_sleep(waiter, client->cancel ? &lw_check_wait_limit : NULL);
	signalled = lw_cond_end(client->locks[LW_CHECK_COND], waiter);
	lw_check_note(LW_CHECK_RELEASED, LW_CHECK_COND, 0);
	acquire(client);
	return signalled;
}

static void obtain(const struct lw_check_client *client)
{
	uint32_t how;
	bool last;

	acquire(client);
	add(client->data[2], 1);
	while (how = lw_plain_read(client->data[0]), how == NONE)
		if (!wait(client))
			break;
	release(client);
	if (how == SIGNAL)
		wake(client, SIGNAL);
	acquire(client);
	last = leave(client);
	release(client);
	if (last)
		destroy(client);
}

void lw_check_cond_thread(const struct lw_check_client *client, uint32_t thread)
{
	if (thread == 0)
		provide(client);
	else
		obtain(client);
}
