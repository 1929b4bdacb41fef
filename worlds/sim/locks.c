// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Every lock file, as one translation unit for the simulator. crates/sim/build.rs lists them. */
#include "lock_type.h"

/* Before the files, since some name the types of other locks, which are static in this world. */
#define LW_LOCK(id) static const struct lw_lock_type lw_##id##_type;
#include "locks_list.h"

#include "lock_files.h"

const struct lw_lock_type *const lw_sim_lock_types[] = {
#define LW_LOCK(id) &lw_##id##_type,
#include "locks_list.h"
	NULL,
};

const char *const lw_sim_event_names[] = {
#define LW_EVENT(name, ...) #name,
#include "events_list.h"
	NULL,
};

static bool lw_sim_change(union lw_lockref *ref, const struct lw_lockref_lock *lock, bool up)
{
	int32_t left;

	return (up ? lw_lockref_raise(ref, lock, LW_LOCKREF_ANY)
		   : lw_lockref_lower(ref, lock, LW_LOCKREF_ANY, &left)) == LW_LOCKREF_DONE;
}

/* Gets or puts a reference if that can be done without the lock, never if it fits no lockref. */
bool lw_sim_lockref_change(union lw_lockref *ref, const struct lw_lock_type *lock, bool up)
{
#define LW_LOCKREF(id, ...)          \
	if (lock == &lw_##id##_type) \
		return lw_sim_change(ref, &lw_lockref_##id##_inner, up);
#include "lockref_list.h"
	return false;
}
