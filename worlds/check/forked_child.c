// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The child of a fork, as in worlds/user/slots.c. The engine has the list of free slots. */
#include "client.h"
#include "forked_child.h"

void lw_check_forked_child(uint32_t own)
{
	if (lw_forked_slots(lw_slots(), own, lw_check_slot_free)) {
		lw_check_node_queues_end();
		/* The thread has not forked in a wait. */
		lw_forked_empty_parked_heads(NULL);
	}
}
