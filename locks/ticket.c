// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "lock_type.h"
#include "ticket.h"

LW_DESCRIBE(ticket, union lw_ticket, .summary = "ticket lock", .traits = LW_FIFO | LW_SPINS,
	    .origin = "Reed and Kanodia 1979; Mellor-Crummey and Scott 1991");
