// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads that use a seqlock of a source. Writers add 1 to both words of a pair, readers read both.
 * A reader may see a write that is not complete, but must not accept it.
 *
 * So readers race with writers by design, and the accesses to the pair are atomic and relaxed.
 * Writers have data of their own beside the pair, on which two of them would race.
 */
#include "client.h"
#include "surroundings.h"

struct pair {
	lw_atomic(uint32_t) first, second;
};

static void write_pair(const struct lw_check_client *client, struct pair *pair)
{
	void *node = lw_check_lent_node(0);
	uint32_t next;

	lw_check_note(LW_CHECK_BEGIN, 0, 0);
	client->type->lock(client->locks[0], node);
	lw_check_note(LW_CHECK_ACQUIRED, 0, 0);
	lw_plain_write(client->data[1], 0);
	next = lw_load(&pair->first, relaxed) + 1;
	lw_store(&pair->first, next, relaxed);
	lw_store(&pair->second, next, relaxed);
	lw_check_note(LW_CHECK_RELEASE, 0, 0);
	client->type->unlock(client->locks[0], node);
	lw_check_note(LW_CHECK_RELEASED, 0, 0);
}

static void read_pair(const struct lw_check_client *client, struct pair *pair)
{
	uint32_t first, second;
	uint64_t sequence;

	do {
		sequence = client->functions->read_begin(client->locks[0]);
		first = lw_load(&pair->first, relaxed);
		second = lw_load(&pair->second, relaxed);
	} while (client->functions->read_retry(client->locks[0], sequence));
	if (first != second)
		lw_check_broken("a reader accepts a write of which it has seen a part");
}

void lw_check_seqlock_thread(const struct lw_check_client *client, uint32_t thread)
{
	struct pair *pair = (struct pair *)client->data[0];

	for (uint32_t i = 0; i < client->acquisitions; i++) {
		if (thread >= client->threads - client->readers)
			read_pair(client, pair);
		else
			write_pair(client, pair);
	}
}
