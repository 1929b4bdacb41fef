/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lockref mutants: lockrefs with a deliberate mistake, which every tool that tests lockrefs must
 * find. Their lock has the trait LW_BROKEN.
 */
#ifndef LW_LOCKREF_MUTANTS_H
#define LW_LOCKREF_MUTANTS_H

#include "lockref_type.h"

/* All of them; NULL ends the table. */
extern const struct lw_lockref_type *const lw_lockref_mutant_types[];

#endif
