// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "lock_type.h"
#include "tas.h"

LW_DESCRIBE(tas, struct lw_tas, .summary = "test-and-set, the unfair byte lock", .traits = LW_SPINS,
	    .origin = "Rudolph and Segall 1984 (test and test-and-set)");
