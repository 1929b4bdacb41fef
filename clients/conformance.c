// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * In round r thread t acquires, by (t + r) modulo 4, or 5 if the lock has readers:
 *
 *   0  the first lock
 *   1  the first lock, by trylock, and by lock if that fails
 *   2  all locks, nested
 *   3  the last lock, which other threads nest inside the ones before it
 *   4  the first lock, as a reader
 */
#include "conformance.h"

enum round {
	FIRST,
	TRY_FIRST,
	ALL,
	LAST,
	READ_FIRST,
};

static enum round kind_of_round(const struct lw_client *client, unsigned int thread,
				unsigned int round)
{
	return (thread + round) % (client->type->read_lock ? READ_FIRST + 1 : READ_FIRST);
}

static void *node_of(const struct lw_client *client, unsigned int thread, unsigned int i)
{
	size_t number = (size_t)thread * LW_CLIENT_NODES + i;

	return (char *)client->nodes + number * lw_client_node_stride(client->type);
}

/*
 * Called just after an acquisition. Checks that no other thread is in the critical section, and
 * that everything that the last holder wrote is visible.
 */
static unsigned int enter(const struct lw_client *client, unsigned int thread, unsigned int lock)
{
	struct lw_client_record *record = &client->memory->records[lock];
	unsigned int violations = lw_plain_read(&record->owner) != 0;
	uint64_t count = lw_plain_read(&record->count);

	violations += lw_plain_read(&record->copy) != count;
	lw_plain_write(&record->owner, thread + 1);
	if (client->inside)
		client->inside();
	/* trylock on a held lock must fail, even for its holder. */
	if (client->type->trylock(client->locks[lock], node_of(client, thread, LW_CLIENT_LOCKS)))
		violations++;
	lw_plain_write(&record->count, count + 1);
	return violations;
}

/* Called just before a release. Checks that no other thread has been in the critical section. */
static unsigned int leave(const struct lw_client *client, unsigned int thread, unsigned int lock)
{
	struct lw_client_record *record = &client->memory->records[lock];
	unsigned int violations = lw_plain_read(&record->owner) != thread + 1;

	lw_plain_write(&record->owner, 0);
	/* Written last: only the release of the lock makes it visible to the next holder. */
	lw_plain_write(&record->copy, lw_plain_read(&record->count));
	return violations;
}

/* Reads the first lock, once and again, while no thread may write. */
static unsigned int read_round(const struct lw_client *client, unsigned int thread)
{
	const struct lw_lock_type *type = client->type;
	struct lw_client_record *record = &client->memory->records[0];
	unsigned int violations = 0;
	uint64_t count;

	if (thread % 2 != 0 || !type->read_trylock(client->locks[0]))
		type->read_lock(client->locks[0]);
	count = lw_plain_read(&record->count);
	violations += lw_plain_read(&record->owner) != 0;
	violations += lw_plain_read(&record->copy) != count;
	if (client->inside)
		client->inside();
	violations += type->trylock(client->locks[0], node_of(client, thread, 0));
	if (type->read_trylock(client->locks[0]))
		type->read_unlock(client->locks[0]);
	else
		violations++;
	violations += lw_plain_read(&record->count) != count;
	type->read_unlock(client->locks[0]);
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
			/* With one thread, trylock on a free lock must succeed. */
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

/* Compares the final counts with the number of acquisitions. Returns the violations. */
static unsigned int check(const struct lw_client *client)
{
	uint64_t expected[LW_CLIENT_LOCKS] = {0};
	unsigned int violations = 0;

	for (unsigned int thread = 0; thread < client->threads; thread++) {
		for (unsigned int round = 0; round < client->rounds; round++) {
			enum round kind = kind_of_round(client, thread, round);

			for (unsigned int lock = 0; lock < client->depth; lock++)
				expected[lock] += kind == ALL ||
						  (kind != READ_FIRST &&
						   lock == (kind == LAST ? client->depth - 1 : 0));
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
		enum round kind = kind_of_round(client, thread, round);

		violations += kind == READ_FIRST ? read_round(client, thread)
						 : one_round(client, thread, kind);
		if (client->outside)
			client->outside();
	}
	/* acq_rel: the last thread to finish sees everything that the others did */
	if (lw_fetch_add(&client->memory->finished, 1, acq_rel) + 1 == client->threads)
		violations += check(client);
	return violations;
}
