// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Every lock file, as one translation unit for the model checker. crates/check/build.rs lists them.
 */
#include "lock_type.h"

/* Before the files, since some name the types of other locks, which are static in this world. */
#define LW_LOCK(id) static const struct lw_lock_type lw_##id##_type;
#include "locks_list.h"

#include "lock_files.h"

/* These call lock functions that are static in this world. */
#include "cond_client.c"
#include "lockref_mutants.c"

const struct lw_lock_type *const lw_check_lock_types[] = {
#define LW_LOCK(id) &lw_##id##_type,
#include "locks_list.h"
	NULL,
};

const struct lw_lockref_type *const lw_check_lockref_types[] = {
#define LW_LOCKREF(id, ...) &lw_lockref_##id##_type,
#include "lockref_list.h"
	NULL,
};

const size_t lw_check_cond_size = sizeof(struct lw_cond);
const struct lw_lock_type *const lw_check_cond_lock = &lw_mutex_type;

/* The layout of queue nodes, by which traces show queues. */
const size_t lw_check_node_size = sizeof(struct lw_node);
const size_t lw_check_node_queues_size = LW_NODE_QUEUES * sizeof(struct lw_node);
const size_t lw_check_parked_head_size = sizeof(struct lw_parked_head);
const size_t lw_check_node_next = offsetof(struct lw_node, next);
const size_t lw_check_node_locked = offsetof(struct lw_node, locked);
const size_t lw_check_node_count = offsetof(struct lw_node, count);
const size_t lw_check_node_secondary_head = offsetof(struct lw_node, secondary_head);
/* Not 0 while the queue of a NUMA node is in use. */
const size_t lw_check_node_waiters = offsetof(struct lw_node, waiters);

/* The pieces of a lock word. */
const uint32_t lw_check_word_hq = LW_HQ;
const uint32_t lw_check_word_hq_numa = LW_HQ_NUMA;
const uint32_t lw_check_word_service = LW_SERVICE_MASK;
const uint32_t lw_check_word_locked = LW_UNLOCKING;
const uint32_t lw_check_word_queue = LW_QUEUE_LOCKED;
const uint32_t lw_check_word_parked = LW_PARKED;
const uint32_t lw_check_word_tail = LW_TAIL_MASK;
const uint32_t lw_check_word_first_queue = LW_HQ_FIRST_QUEUE_TAIL;

_Thread_local uint64_t lw_check_events;

uint64_t lw_check_take_events(void)
{
	uint64_t events = lw_check_events;

	lw_check_events = 0;
	return events;
}

_Static_assert(LW_EVENT_COUNT <= 64, "a bit for each event");
const char *const lw_check_event_names[] = {
#define LW_EVENT(name, ...) #name,
#include "events_list.h"
	NULL,
};
