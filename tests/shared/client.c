// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Thread t in round r takes, by (t + r) modulo 4,
 *
 *   0  the first lock
 *   1  the first lock, by trylock if that does
 *   2  all locks, nested
 *   3  the last lock, which others hold within those before it
 */
#include "client.h"

const size_t lw_client_memory_size = sizeof(struct lw_client_memory);

enum round {
	FIRST,
	TRY_FIRST,
	ALL,
	LAST,
	KINDS_OF_ROUND,
};

static void *node_of(const struct lw_client *client, unsigned int thread, unsigned int i)
{
	size_t number = (size_t)thread * LW_CLIENT_NODES + i;

	return (char *)client->nodes + number * lw_client_node_stride(client->type);
}

/* The lock has just been acquired: nobody else is in, and all that the last one wrote is seen. */
static unsigned int enter(const struct lw_client *client, unsigned int thread, unsigned int lock)
{
	struct lw_client_record *record = &client->memory->records[lock];
	unsigned int violations = lw_plain_read(&record->owner) != 0;
	uint64_t count = lw_plain_read(&record->count);

	violations += lw_plain_read(&record->copy) != count;
	lw_plain_write(&record->owner, thread + 1);
	if (client->inside)
		client->inside();
	/* A held lock cannot be had, not even by its holder. */
	if (client->type->trylock(client->locks[lock], node_of(client, thread, LW_CLIENT_LOCKS)))
		violations++;
	lw_plain_write(&record->count, count + 1);
	return violations;
}

/* About to be released: nobody has been in meanwhile. */
static unsigned int leave(const struct lw_client *client, unsigned int thread, unsigned int lock)
{
	struct lw_client_record *record = &client->memory->records[lock];
	unsigned int violations = lw_plain_read(&record->owner) != thread + 1;

	lw_plain_write(&record->owner, 0);
	/* Last, so that nothing but the lock's own order brings it to the next one. */
	lw_plain_write(&record->copy, lw_plain_read(&record->count));
	return violations;
}

static unsigned int one_round(const struct lw_client *client, unsigned int thread, enum round kind)
{
	const struct lw_lock_type *type = client->type;
	unsigned int first = kind == LAST ? client->depth - 1 : 0;
	unsigned int end = kind == FIRST || kind == TRY_FIRST ? 1 : client->depth;
	unsigned int violations = 0;

	for (unsigned int lock = first; lock < end; lock++) {
		void *node = node_of(client, thread, lock);

		if (kind != TRY_FIRST || !type->trylock(client->locks[lock], node)) {
			/* Nobody else is there to have it. */
			violations += kind == TRY_FIRST && client->threads == 1;
			type->lock(client->locks[lock], node);
		}
		violations += enter(client, thread, lock);
	}
	for (unsigned int lock = end; lock-- > first;) {
		violations += leave(client, thread, lock);
		type->unlock(client->locks[lock], node_of(client, thread, lock));
	}
	return violations;
}

/* Do the counters add up? */
static unsigned int check(const struct lw_client *client)
{
	uint64_t expected[LW_CLIENT_LOCKS] = {0};
	unsigned int violations = 0;

	for (unsigned int thread = 0; thread < client->threads; thread++) {
		for (unsigned int round = 0; round < client->rounds; round++) {
			enum round kind = (thread + round) % KINDS_OF_ROUND;

			for (unsigned int lock = 0; lock < client->depth; lock++)
				expected[lock] += kind == ALL ||
						  lock == (kind == LAST ? client->depth - 1 : 0);
		}
	}
	for (unsigned int lock = 0; lock < client->depth; lock++) {
		struct lw_client_record *record = &client->memory->records[lock];

		violations += lw_plain_read(&record->count) != expected[lock];
		violations += lw_plain_read(&record->copy) != expected[lock];
		violations += lw_plain_read(&record->owner) != 0;
	}
	return violations;
}

unsigned int lw_client_thread(const struct lw_client *client, unsigned int thread)
{
	unsigned int violations = 0;

	for (unsigned int round = 0; round < client->rounds; round++) {
		violations += one_round(client, thread, (thread + round) % KINDS_OF_ROUND);
		if (client->outside)
			client->outside();
	}
	/* acq_rel: all that the others did is seen by the last */
	if (lw_fetch_add(&client->memory->finished, 1, acq_rel) + 1 == client->threads)
		violations += check(client);
	return violations;
}
