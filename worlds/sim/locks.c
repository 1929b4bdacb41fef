// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The lock files, compiled for the simulator. */
#include "tas.c"
#include "ticket.c"
#include "mcs.c"
#include "qspinlock.c"
#include "cna.c"
#include "busted.c"

#define X(id) &lw_##id##_type,
const struct lw_lock_type *const lw_sim_lock_types[] = {LW_LOCKS(X) NULL};
#undef X

const size_t lw_sim_node_size = sizeof(struct lw_node);

#define X(name, meaning) #name,
const char *const lw_sim_event_names[] = {LW_EVENTS(X) NULL};
#undef X
