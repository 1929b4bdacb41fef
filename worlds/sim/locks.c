// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The lock files, compiled for the simulator. */
#include "tas.c"
#include "ticket.c"
#include "mcs.c"
#include "qspinlock.c"
#include "cna.c"
#include "hq.c"
#include "busted.c"

const struct lw_lock_type *const lw_sim_lock_types[] = {
#define LW_LOCK(id) &lw_##id##_type,
#include "locks_list.h"
	NULL,
};

const size_t lw_sim_node_size = sizeof(struct lw_node);
const size_t lw_sim_node_queues_size = LW_NODE_QUEUES * sizeof(struct lw_node);

const char *const lw_sim_event_names[] = {
#define LW_EVENT(name, ...) #name,
#include "events_list.h"
	NULL,
};
