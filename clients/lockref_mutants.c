// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "lockref_mutants.h"

#include "lockref.h"
#include "tas.h"

/* Both mutants use test-and-set. LW_DEFINE_LOCKREF calls it by these names. */
#define lw_blind_lock	  lw_tas_lock
#define lw_blind_trylock  lw_tas_trylock
#define lw_blind_unlock	  lw_tas_unlock
#define lw_undead_lock	  lw_tas_lock
#define lw_undead_trylock lw_tas_trylock
#define lw_undead_unlock  lw_tas_unlock

LW_DESCRIBE(blind, struct lw_tas, .summary = "test-and-set", .traits = LW_SPINS | LW_BROKEN,
	    .origin = "tests");

/* Blind: changes the count without checking whether the lock is held. */
LW_DEFINE_LOCKREF(blind, struct lw_tas, 0, true)
LW_DESCRIBE_LOCKREF(blind, &lw_blind_type)

/* Undead: get_not_dead also gets a reference to an object that is marked dead. */
LW_DEFINE_LOCKREF(undead, struct lw_tas, 0, val == 0)

static inline bool undead_get_not_dead(union lw_lockref_undead *ref)
{
	return lw_lockref_get_from(&ref->ref, &lw_lockref_undead_inner, LW_LOCKREF_DEAD);
}

#define lw_lockref_undead_get_not_dead undead_get_not_dead
LW_DESCRIBE_LOCKREF(undead, &lw_blind_type)

const struct lw_lockref_type *const lw_lockref_mutant_types[] = {
	&lw_lockref_blind_type,
	&lw_lockref_undead_type,
	NULL,
};
