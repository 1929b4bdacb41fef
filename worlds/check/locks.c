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
#include "forked_child.c"
#include "lockref_mutants.c"
#include "resilient_client.c"
#include "resilient_mutants.c"
#include "rwlock_client.c"

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

const struct lw_tunables lw_check_small_tunables = {
	LW_TUNABLES_DEFAULT,
#define LW_TUNABLE(name, default, kernel_default, maximum, checked, ...) .name = (checked),
#include "tunables_list.h"
};

const struct lw_lock_type *const lw_check_cond_lock = &lw_mutex_type;

/* The tail that stands for the queue of the first NUMA node. Its macro is in no header. */
const uint32_t lw_check_first_queue_tail = LW_FIRST_QUEUE_TAIL;

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
