// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads that get and put references to an object. The object stays alive with a count of 0, as in
 * a cache, until the thread that puts the last reference destroys it.
 *
 * A thread with a reference reads the object. The lock's holder writes the object when there are no
 * references. So a wrong count, or a get or put that is not ordered, is a data race.
 */
#include "client.h"
#include "surroundings.h"

enum { ALIVE, DESTROYED };

enum get {
	NOT_ZERO,
	NOT_DEAD,
	AS_HOLDER,
	GETS,
};

static void acquired(const struct lw_check_client *client)
{
	lw_check_note(LW_CHECK_ACQUIRED, 0, 0);
	lw_plain_write(client->data[0], 0);
}

static void release(const struct lw_check_client *client)
{
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
	client->type->unlock(client->locks[0], lw_check_lent_node(0));
	lw_check_note(LW_CHECK_RELEASED, 0, 0);
}

static bool get_as_holder(const struct lw_check_client *client)
{
	void *ref = client->locks[0], *node = lw_check_lent_node(0);
	int32_t count;

	lw_check_note(LW_CHECK_BEGIN, 0, 0);
	if (!client->trylock || !client->type->trylock(ref, node))
		client->type->lock(ref, node);
	acquired(client);
	count = client->lockref->count(ref);
	if (count == 0)
		lw_plain_write(client->object, ALIVE);
	if (count >= 0)
		client->lockref->set_count(ref, count + 1);
	release(client);
	return count >= 0;
}

static bool get(const struct lw_check_client *client, enum get how)
{
	void *ref = client->locks[0];

	switch (how) {
	case NOT_ZERO:
		return client->lockref->get_not_zero(ref);
	case NOT_DEAD:
		return client->lockref->get_not_dead(ref);
	default:
		return get_as_holder(client);
	}
}

/* Put a reference; true if that destroys the object. */
static bool put(const struct lw_check_client *client)
{
	void *ref = client->locks[0];
	bool destroy;

	lw_check_note(LW_CHECK_BEGIN, 0, 0);
	if (client->lockref->put_or_lock(ref)) {
		lw_check_note(LW_CHECK_RELEASED, 0, 0);
		return false;
	}
	acquired(client);
	if (client->lockref->count(ref) != 1)
		lw_check_broken("the count is not 1 when the last reference is put");
	destroy = lw_choose(2) != 0;
	if (destroy) {
		client->lockref->mark_dead(ref);
	} else {
		lw_plain_write(client->object, ALIVE);
		client->lockref->set_count(ref, 0);
	}
	release(client);
	if (destroy)
		lw_plain_write(client->object, DESTROYED);
	return destroy;
}

void lw_check_lockref_thread(const struct lw_check_client *client, uint32_t thread)
{
	bool dead = false;

	for (uint32_t i = 0; i < client->acquisitions; i++) {
		if (!get(client, (thread + i) % GETS))
			continue;
		if (dead || lw_plain_read(client->object) != ALIVE)
			lw_check_broken("a thread got a reference to a dead object");
		dead = put(client);
	}
}
