// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "byte.h"
#include "lock_type.h"

LW_DESCRIBE(byte, struct lw_byte, .summary = "the unfair byte lock of guests of Linux 4.2",
	    .traits = LW_SPINS | LW_HISTORIC,
	    .origin = "Zijlstra, Linux 4.2 (virt_queued_spin_lock)");
