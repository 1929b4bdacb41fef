/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of stacks, from which the command finds the callers of an acquisition and of its release.
 * Copying is the only work that is done here: the tables for unwinding are read at the end.
 */
#ifndef LW_PROFILE_STACKS_H
#define LW_PROFILE_STACKS_H

#include "record.h"

/*
 * Copies the stack of an acquisition that the site has counted already, if it is one of the sample;
 * `waited` is its wait time, 0 if it did not wait. Returns the number of the copy, from 1. 0: there
 * is none.
 */
uint32_t lw_profile_stack_acquired(struct lw_profile *profile, const struct lw_profile_site *site,
				   uint64_t waited);

/* Copies the stack of the release of this acquisition. 0: its stack was not copied. */
void lw_profile_stack_released(struct lw_profile *profile, uint32_t number);

#endif
