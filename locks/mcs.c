// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "lock_type.h"
#include "mcs.h"

LW_DESCRIBE_WITH_NODE(mcs, struct lw_mcs, struct lw_mcs_node,
		      .summary = "MCS queue lock, nodes lent by the caller",
		      .traits = LW_FIFO | LW_SPINS, .origin = "Mellor-Crummey and Scott 1991");
