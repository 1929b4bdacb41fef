/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lockrefs with a mistake in them, which every harness must catch: LW_BROKEN by their lock. */
#ifndef LW_LOCKREF_PLANTED_H
#define LW_LOCKREF_PLANTED_H

#include "lockref_type.h"

/* Ends with NULL. */
extern const struct lw_lockref_type *const lw_planted_lockref_types[];

#endif
